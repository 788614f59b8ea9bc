"""Names of pods in hosts files."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.kubelet.pod_names import (
    HostsFiles,
    PodNames,
    headless_addresses,
)

NODE = PodNames("team", "job-node-0-0", "job", "10.88.0.2")


def names_in(text: str, address: str) -> set[str]:
    """All names of an address."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name for found, *names in lines if found == address for name in names}


def service(name: str, cluster_ip: str = "None", namespace: str = "team", **selector: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": cluster_ip, "selector": selector}}


@pytest.mark.parametrize(
    ("described", "addresses"),
    [
        pytest.param(service("job", a="b"), ["10.88.0.3"], id="a pod that has it as its subdomain"),
        pytest.param(service("ring"), [], id="without a selector"),
    ],
)
def test_headless_services(described: Object, addresses: list[str]) -> None:
    """The name of a headless Service stands for all pods that it selects."""
    second = PodNames("team", "pod", "", "10.88.0.3")
    found = headless_addresses([described], [(NODE, {"a": "b"}), (second, {"a": "b", "c": "d"})])
    assert [entry.address for entry in found] == addresses


async def test_services_come_and_go(tmp_path: Path) -> None:
    """Files name the API server always, and other Services as they are at the last refresh."""
    services = [service("ring", a="b")]
    files = HostsFiles("", "10.96.0.1", lambda: services)
    await files.add("one", NODE, tmp_path / "one", labels={"a": "b"})
    assert "ring" in names_in((tmp_path / "one").read_text(), "10.88.0.2")
    services.clear()
    await files.refresh()
    assert "ring" not in names_in((tmp_path / "one").read_text(), "10.88.0.2")
    assert "kubernetes.default.svc" in names_in((tmp_path / "one").read_text(), "10.96.0.1")
