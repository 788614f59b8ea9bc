"""Fixtures of the tests of all distributions: those of the tests of trainer-operator."""

from __future__ import annotations

from tests.conftest import no_blocking_calls, plain_logs

__all__ = ["no_blocking_calls", "plain_logs"]
