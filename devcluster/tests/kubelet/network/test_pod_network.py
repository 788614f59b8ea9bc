"""Address pools."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from trainer_devcluster.kubelet.errors import PodNetworkError
from trainer_devcluster.kubelet.network.pod_network import AddressPool


def test_in_turn() -> None:
    """A released address is not taken again before the others have been."""
    pool = AddressPool(IPv4Network("10.0.0.0/29"))
    first = pool.allocate()
    pool.release(first)
    assert [pool.allocate() for _ in range(5)] == ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2"]


def test_exhausted() -> None:
    """When all are used, the remedy is named."""
    pool = AddressPool(IPv4Network("10.0.0.0/29"))
    for _ in range(5):
        pool.allocate()
    with pytest.raises(PodNetworkError, match="delete some pods"):
        pool.allocate()
    pool.release("10.0.0.4")
    assert pool.allocate() == "10.0.0.4"
