"""What stands for the two ends of a controller: the reconcile function, and the queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trainer.kube.controller.reconcile import Result
from trainer.kube.objects import ObjectKey


class Reconciler:
    """A reconcile function that plays a script of results, errors to raise and functions to call, then succeeds."""

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        self.keys: list[ObjectKey] = []

    async def __call__(self, key: ObjectKey) -> Result | None:
        self.keys.append(key)
        step = self._script.pop(0) if self._script else None
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            act: Callable[[], Awaitable[Result | None]] = step
            return await act()
        return step  # type: ignore[return-value]


class Keys:
    """Collects what is enqueued."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def __call__(self, key: ObjectKey, *, priority: int = 0) -> None:
        self.calls.append((str(key), priority))
