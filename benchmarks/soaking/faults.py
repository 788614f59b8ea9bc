"""Faults that are injected, and what processes log that is not one of them."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import anyio
from anyio.to_thread import run_sync

from e2e.balancer import Balancer

_PERIOD: Final = 150.0
"""Seconds between outages. The pause of a reflector is short again when it has not failed for two minutes, as with
client-go: where outages follow faster, it grows to half a minute, and trainings stand still meanwhile."""
_OUTAGES: Final = (0.2, 4.0)
"""Seconds for which nobody reaches the API server, in turns: connections break, or it is away for a while."""
_AFTERMATH: Final = timedelta(seconds=30)
"""For so long after an outage a process may say that it suffered from it: retries wait up to so long."""
_SEVERE: Final = frozenset({"warning", "error", "critical"})
_BUSY: Final = "trainer.kube.manager.loop_lag"
"""Logger that tells of a busy machine, and of the collection of garbage for each sample."""
_SHORT_HISTORY: Final = "resource version is too old, listing again"
"""What a watch says that has slept for longer than the API server remembers, which is not long in a soak."""
_ERROR: Final = re.compile(r"Traceback|\w*(Error|Exception): ")


@dataclass(slots=True)
class Faults:
    """Restarts the API server once, and breaks all connections to it now and then."""

    balancer: Balancer
    restart: Callable[[], None] = lambda: None
    """Blocks."""
    windows: list[tuple[datetime, datetime]] = field(default_factory=list)
    """When processes may complain."""
    calm: anyio.Lock = field(default_factory=anyio.Lock)
    """No outage begins while somebody holds it."""

    async def run(self, restart_after: float) -> None:
        """Inject until cancelled; the API server is restarted after so many seconds."""
        await anyio.sleep(restart_after)
        began = datetime.now(UTC)
        await run_sync(self.restart)
        self.windows.append((began, datetime.now(UTC) + _AFTERMATH))
        for outage in itertools.cycle(_OUTAGES):
            await anyio.sleep(_PERIOD)
            async with self.calm:
                began = datetime.now(UTC)
                try:
                    with self.balancer.cut():
                        await anyio.sleep(outage)
                finally:  # also of an outage in which the soak ends
                    self.windows.append((began, datetime.now(UTC) + _AFTERMATH))

    def complaints(self, log: Iterable[str]) -> Counter[str]:
        """Lines of a log that tell of trouble which nobody injected, by their text."""
        found: Counter[str] = Counter()
        for line in log:
            entry = _entry(line)
            if entry is None:
                if _ERROR.match(line):
                    found[line.strip()] += 1
            elif entry.get("level") in _SEVERE and not self._is_explained(entry):
                found[f"{entry['level']}: {entry.get('event')}"] += 1
        return found

    def unexplained(self, failures: Iterable[tuple[datetime, str]]) -> Counter[str]:
        """What has failed while there was no outage, by its text."""
        return Counter(text for moment, text in failures if not self._is_in_outage(moment))

    def _is_explained(self, entry: dict[str, str]) -> bool:
        if entry.get("logger") == _BUSY or entry.get("event") == _SHORT_HISTORY:
            return True
        if "exception" in entry:  # no outage is an error of the program
            return False
        return self._is_in_outage(datetime.fromisoformat(entry["timestamp"]))

    def _is_in_outage(self, moment: datetime) -> bool:
        return any(began <= moment <= ended for began, ended in self.windows)


def _entry(line: str) -> dict[str, str] | None:
    if not line.startswith("{"):
        return None
    try:
        entry: dict[str, str] = json.loads(line)
    except ValueError:
        return None
    return entry
