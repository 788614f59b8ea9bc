"""Fixtures of the tests of commands."""

from __future__ import annotations

from tests.cli.conftest import client, clock, cluster, served

__all__ = ["client", "clock", "cluster", "served"]
