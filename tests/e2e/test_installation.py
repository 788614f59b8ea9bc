"""Ports for managers of the end-to-end tests."""

from __future__ import annotations

import socket

import pytest

from e2e import installation
from e2e.installation import HOST, free_ports


def test_free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that somebody listens on is not given, and none is given twice, since its manager may be down for now."""
    with socket.create_server((HOST, 0)) as taken, socket.create_server((HOST, 0)) as left:
        ports = [each.getsockname()[1] for each in (taken, left)]
        left.close()
        monkeypatch.setattr(installation, "PORTS", ports)
        assert free_ports(1) == ports[1:]
        with pytest.raises(AssertionError, match="taken"):
            free_ports(1)


def test_ports_are_not_those_of_the_kernel() -> None:
    """The ports are below the ephemeral range, so the kernel cannot assign them while a manager is down."""
    assert max(free_ports(5)) < 32_768
