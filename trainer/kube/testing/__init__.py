"""What tests of controllers need: a clock that tests move and an API server in memory."""

from __future__ import annotations

from trainer.kube.testing.client import FakeClient, RecordedRequest
from trainer.kube.testing.clock import ManualClock, settle

__all__ = ["FakeClient", "ManualClock", "RecordedRequest", "settle"]
