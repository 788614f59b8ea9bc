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
        self._process = -1
        self._is_running = False

    def watch(self) -> None:
        """See to it that the signal is noticed, also when somebody has installed a handler since."""
        current = signal.getsignal(signal.SIGTERM)
        if current is self._installed or threading.current_thread() is not threading.main_thread():
            return
        if current is None:  # not installed by Python, so it could not be called
            return
        self._previous, self._process = current, os.getpid()
        signal.signal(signal.SIGTERM, self._installed)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_running:  # the handler before called this one, which it has found in its place
            return
        if os.getpid() != self._process and not callable(self._previous):
            # A child, such as a worker that loads data, must end as it would.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._is_running = True
        if self.came_at is None:
            self.came_at = time.monotonic()
        try:
            if callable(self._previous):
                self._previous(number, frame)
        finally:
            self._is_running = False
