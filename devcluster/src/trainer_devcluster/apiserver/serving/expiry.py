"""Expiry: events live for an hour, as in the real server."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import key_of, metadata_of, resource_version_of
from trainer.kube.resource import EVENTS
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.backend import Backend

EVENT_LIFETIME = timedelta(hours=1)
CHECK_INTERVAL = 60.0
"""Seconds between two looks for expired events."""
_PARTITION = Partition.of(EVENTS)


async def expire_events(backend: Backend) -> None:
    """Delete events an hour after their last write, until cancelled."""
    while True:
        await backend.clock.sleep(CHECK_INTERVAL)
        oldest = backend.clock.now() - EVENT_LIFETIME
        for event in backend.storage.snapshot(_PARTITION):
            if _last_written(event) < oldest:
                backend.storage.delete(_PARTITION, key_of(event), expected=resource_version_of(event))


def _last_written(event: Object) -> datetime:
    observed = (event.get("series") or {}).get("lastObservedTime")
    moments = [observed, event.get("lastTimestamp"), metadata_of(event)["creationTimestamp"]]
    return max(parse_timestamp(moment) for moment in moments if moment)
