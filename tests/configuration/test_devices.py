"""Names of devices in the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.configurations import write
from trainer.configuration.configuration import load_configuration
from trainer.framework import StaticReader
from trainer.framework.plugin_api.devices import Devices

CLAIM = {"claims": [{"name": "c"}]}
POD = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}


def template(device_class: str) -> Any:
    """A ResourceClaimTemplate with four devices of a class."""
    request = {"name": "r", "exactly": {"deviceClassName": device_class, "count": 4}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "team"}, "spec": spec}


@pytest.mark.parametrize(
    ("devices", "resources", "expected"),
    [
        pytest.param("[{resourceName: example.com/a}]", {"limits": {"example.com/a": 2}}, Devices(2), id="name"),
        pytest.param("[{resourceName: example.com/a}]", {"limits": {"example.com/ab": 2}}, Devices(), id="whole-name"),
        pytest.param("[{resourceName: example.com/a.b}]", {"limits": {"example.com/axb": 2}}, Devices(), id="dot"),
        pytest.param("[{resourceName: example.com/a-*}]", {"limits": {"example.com/a-1": 2}}, Devices(2), id="star"),
        pytest.param("[{resourceName: '*.example.com/a'}]", {"limits": {"b.example.com/a": 2}}, Devices(2), id="first"),
        pytest.param(
            "[{resourceName: example.com/a, seenByTorchrun: false}]",
            {"limits": {"example.com/a": 2}},
            Devices(2, seen_by_torchrun=False),
            id="not-seen",
        ),
        pytest.param(
            "[{resourceName: nvidia.com/gpu, unit: hundredth}]",
            {"limits": {"nvidia.com/gpu": 200}},
            Devices(2),
            id="unit",
        ),
        pytest.param("[{deviceClassName: a.example.com}]", CLAIM, Devices(4), id="class"),
        pytest.param("[{deviceClassName: b.example.com}]", CLAIM, Devices(), id="another-class"),
        pytest.param("[]", CLAIM, Devices(), id="unknown-class"),
    ],
)
def test_device_table(tmp_path: Path, devices: str, resources: Any, expected: Devices) -> None:
    """The names of the configuration match; `*` matches any characters, other characters themselves."""
    configuration = load_configuration(write(tmp_path / "manager.yaml", f"devices: {devices}"))
    table = configuration.device_table(StaticReader(template("a.example.com")))
    assert table.devices_of(resources, POD, "team") == expected
