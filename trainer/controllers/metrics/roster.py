"""The roster: TrainJobs by namespace in the order in which their states changed, for the few that metrics name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.metrics.cardinality import Shares

if TYPE_CHECKING:
    from trainer.kube.objects import ObjectKey

LIMIT = 1000
"""TrainJobs that are named at a time, of which a namespace that is alone has 50. Each is a series, and another one for
each state that it passes."""


class Roster:
    """Kept up to date by the census."""

    def __init__(self) -> None:
        self._going_on: dict[str, dict[ObjectKey, None]] = {}
        self._ended: dict[str, dict[ObjectKey, None]] = {}

    def put(self, key: ObjectKey, *, has_ended: bool) -> None:
        """The state of a TrainJob has changed, to one that it leaves again or not."""
        self.remove(key)
        namespaces = self._ended if has_ended else self._going_on
        namespaces.setdefault(key.namespace, {})[key] = None

    def remove(self, key: ObjectKey) -> None:
        """A TrainJob is gone."""
        for namespaces in (self._going_on, self._ended):
            keys = namespaces.get(key.namespace)
            if keys is not None and key in keys:
                del keys[key]
                if not keys:
                    del namespaces[key.namespace]

    def latest(self, limit: int = LIMIT) -> list[ObjectKey]:
        """The TrainJobs of each namespace that changed last, those that go on before others; for any thread."""
        shares = Shares(limit)
        found: list[ObjectKey] = []
        for namespaces in (self._going_on, self._ended):
            # The copies are made without a turn for the event loop.
            for namespace, keys in tuple(namespaces.items()):
                for key in reversed(tuple(keys)):
                    if not shares.take(namespace):
                        break
                    found.append(key)
        return found
