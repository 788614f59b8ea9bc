"""Health: named checks behind /healthz and /readyz.

Texts are those of the Kubernetes API server and of controller-runtime, which people and probes know. Why a check fails
is in the log and not in the answer, since anybody may ask.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TypeAlias

import anyio

from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.logger import get_logger

log = get_logger(__name__)

Check: TypeAlias = Callable[[], Awaitable[None]]
"""Returns if all is well, and raises an exception whose text says what is not."""

CHECK_TIMEOUT = 5.0
"""Seconds after which a check counts as failed; probes seldom wait longer."""


async def ping() -> None:
    """The check that only shows that the event loop turns."""


class HealthChecks:
    """The checks of one kind of probe.

    Args:
        name: what is asked for, such as `healthz`; in the texts and the log.
        clock: for the limit of a check; default: that of the machine.
    """

    def __init__(self, name: str, *, clock: Clock | None = None) -> None:
        self.name = name
        self._clock = clock or SystemClock()
        self._checks: dict[str, Check] = {"ping": ping}
        self._failing: dict[str, str] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check.

        Raises:
            ValueError: there is one of this name, or the name cannot be part of a path.
        """
        if not name or "/" in name:
            raise ValueError(f"the name of a check becomes part of a path: {name!r} must not be empty or contain a /")
        if name in self._checks:
            raise ValueError(f"there are two {self.name} checks named {name!r}")
        self._checks[name] = check

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    async def failures(self, names: Collection[str] | None = None) -> dict[str, str]:
        """Run checks at the same time, and return why they failed by name; what changes is logged.

        Args:
            names: which; default: all.
        """
        selected = tuple(self._checks if names is None else names)
        reasons: dict[str, str] = {}

        async def run(name: str) -> None:
            reason = await self._run(self._checks[name])
            if reason is not None:
                reasons[name] = reason
            self._note(name, reason)

        async with anyio.create_task_group() as tasks:
            for name in selected:
                tasks.start_soon(run, name)
        return reasons

    async def report(self, exclude: Collection[str], *, verbose: bool) -> tuple[bool, str]:
        """Run all checks but the excluded ones; whether they passed, and the text that says so."""
        failures = await self.failures([name for name in self._checks if name not in exclude])
        if not failures and not verbose:
            return True, "ok"
        lines = [line_of(name, is_excluded=name in exclude, has_failed=name in failures) for name in self._checks]
        unknown = ", ".join(repr(name) for name in exclude if name not in self._checks)
        if unknown:
            lines.append(f"warn: some checks cannot be excluded: no matches for {unknown}")
        lines.append(f"{self.name} check {'failed' if failures else 'passed'}")
        return not failures, "\n".join(lines) + "\n"

    async def _run(self, check: Check) -> str | None:
        try:
            async with move_on_after(self._clock, CHECK_TIMEOUT) as limit:
                await check()
        except Exception as error:
            return str(error) or type(error).__name__
        return f"no answer within {CHECK_TIMEOUT:g} s" if limit.cancelled_caught else None

    def _note(self, name: str, reason: str | None) -> None:
        if reason is None:
            if self._failing.pop(name, None) is not None:
                log.info("health check passes again", probe=self.name, check=name)
        elif self._failing.get(name) != reason:
            if name not in self._failing:
                log.warning("health check failed", probe=self.name, check=name, reason=reason)
            self._failing[name] = reason


def line_of(name: str, *, has_failed: bool, is_excluded: bool = False) -> str:
    """The result of one check."""
    if is_excluded:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: reason withheld" if has_failed else f"[+]{name} ok"
