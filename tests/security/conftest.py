"""A manager on a fake API server, as the tests of the controllers have it."""

from __future__ import annotations

from tests.controllers.conftest import cluster

__all__ = ["cluster"]
