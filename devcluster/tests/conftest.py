"""Fixtures of all tests of the dev cluster: those of the manager's tests."""

from __future__ import annotations

from tests.conftest import no_blocking_calls, plain_logs

__all__ = ["no_blocking_calls", "plain_logs"]
