"""SIGTERM, by which Kubernetes says that a pod must end: it is kept in mind until the step is over."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType


class StopSignal:
    """Whether SIGTERM has come; handlers that a script or a framework has, or installs later, are called as well."""

    def __init__(self) -> None:
        self.came_at: float | None = None
        """When the first one has come, by `time.monotonic`."""
        self._previous: object = signal.SIG_DFL
        self._installed = self._handle
        self._is_running = self._is_registered = False

    def watch(self) -> None:
        """See to it that the signal is noticed, also when somebody has installed a handler since."""
        current = signal.getsignal(signal.SIGTERM)
        if current is self._installed or threading.current_thread() is not threading.main_thread():
            return
        if current is None:  # not installed by Python, so it could not be called
            return
        self._previous = current
        signal.signal(signal.SIGTERM, self._installed)
        if not self._is_registered and hasattr(os, "register_at_fork"):
            self._is_registered = True
            os.register_at_fork(after_in_child=self.release)

    def release(self) -> None:
        """Let the signal do what it did before, as in a process that was forked, such as a worker that loads data."""
        if signal.getsignal(signal.SIGTERM) is self._installed:
            signal.signal(signal.SIGTERM, self._previous)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_running:  # the handler before called this one, which it has found in its place
            return
        self._is_running = True
        if self.came_at is None:
            self.came_at = time.monotonic()
        try:
            if callable(self._previous):
                self._previous(number, frame)
        finally:
            self._is_running = False
