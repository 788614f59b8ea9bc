from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, fields, updated
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.service import ServiceStrategy

STRATEGY = ServiceStrategy()


def make_service(**spec: Any) -> Object:
    return {"metadata": {"name": "s"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({}, "spec.ports", id="no ports"),
        pytest.param({"type": "NodePort", "ports": [{"port": 1}]}, "spec.type", id="type without a network"),
        pytest.param({"type": "ExternalName"}, "spec.externalName", id="external name"),
        pytest.param({"ports": [{"port": 0}]}, "spec.ports[0].port", id="port number"),
        pytest.param({"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, "spec.ports[0].name", id="several need names"),
        pytest.param(
            {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, "spec.ports[1].name", id="same name"
        ),
    ],
)
def test_wrong_services_are_refused(spec: dict[str, Any], field: str) -> None:
    """The cause names the field."""
    assert fields(created(STRATEGY, make_service(**spec))[1]) == [field]


def test_address_is_immutable() -> None:
    """Others may have resolved it."""
    service, _ = created(STRATEGY, make_service(ports=[{"port": 80}]))
    new = deepcopy(service)
    new["spec"]["clusterIP"] = "10.96.0.11"
    assert fields(updated(STRATEGY, new, service)) == ["spec.clusterIPs[0]"]
