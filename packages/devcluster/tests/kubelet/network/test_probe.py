"""The choice of a pod network."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer_devcluster.kubelet.errors import PodNetworkError
from trainer_devcluster.kubelet.network import netns, probe
from trainer_devcluster.kubelet.network.machine import HostsNetwork
from trainer_devcluster.kubelet.network.probe import open_pod_network
from trainer_devcluster.kubelet.options import PodNetworkMode


def refuse() -> HostsNetwork:
    """Stands for a kernel that allows no namespaces."""
    raise PodNetworkError("the kernel refuses")


async def test_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing better works, the plain network is used, and the description says why."""
    monkeypatch.setattr(netns, "_find_ip", lambda: None)
    monkeypatch.setattr(probe, "HostsNetwork", refuse)
    async with open_pod_network(PodNetworkMode.AUTO, tmp_path) as chosen:
        assert chosen.network.mode is PodNetworkMode.PLAIN
        assert "netns does not work here: the program ip is missing (package iproute2)" in chosen.description
        assert "hosts does not work here: the kernel refuses" in chosen.description


async def test_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode that is forced and does not work is an error that says why."""
    monkeypatch.setattr(probe, "HostsNetwork", refuse)
    with pytest.raises(PodNetworkError, match="pod network hosts does not work here: the kernel refuses"):
        async with open_pod_network(PodNetworkMode.HOSTS, tmp_path):
            pass
