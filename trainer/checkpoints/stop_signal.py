"""SIGTERM, by which Kubernetes says that a pod must end: it is kept in mind until the step is over."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class StopSignal:
    """Whether SIGTERM has come; handlers that a script or a framework has, or installs later, are called as well."""

    def __init__(self) -> None:
        self.has_come = False
        self._previous: object = signal.SIG_DFL
        self._is_running = False

    def watch(self) -> None:
        """See to it that the signal is noticed, also when somebody has installed a handler since."""
        current = signal.getsignal(signal.SIGTERM)
        if current == self._handle or threading.current_thread() is not threading.main_thread():
            return
        if current is None:  # not installed by Python, so it could not be called
            return
        self._previous = current
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_running:  # the handler before called this one, which it has found in its place
            return
        self.has_come = self._is_running = True
        try:
            if callable(self._previous):
                self._previous(number, frame)
        finally:
            self._is_running = False
