"""Records the OptimizationJobs of a cluster, whose trials are recorded as other TrainJobs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.to_thread import run_sync

from trainer.kube.barrier import Barrier
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.change_handler import ChangeHandler
from trainer.kube.cache.informer import Informer
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import mapping_at
from trainer.kube.queue.fair_queue import FairQueue
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.notifications import Webhook
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.records import newest_creation
from trainer_dashboard.history.sweep import sweep_row_of, text_about_sweep
from trainer_dashboard.history.sweep_records import (
    PreparedSweep,
    mark_sweeps_deleted,
    prepared_sweep,
    present_sweeps,
    save_sweeps,
)
from trainer_dashboard.history.training import seconds
from trainer_dashboard.history.waiting import WaitingSweep, namespace_of

_PAUSE = 1.0
"""Seconds between two writes of what has changed."""
_AT_ONCE = 20
"""Sweeps in one transaction, of half a megabyte each at most."""
_LAST_SECONDS = 10.0
"""Time for the last write, when the recorder is ended."""


@dataclass(slots=True)
class _Entry:
    sweep: CachedObject
    state: str = ""
    """The last recorded one; of a sweep that was there before the cluster was recorded, that in which it was found."""
    deleted: float | None = None


class SweepRecorder:
    """Writes what there is now of each OptimizationJob that has changed.

    A cluster that does not serve the kind, or without the right to read it, has no sweeps for it until that changes.

    Args:
        informer: of OptimizationJobs, an optional kind.
        persistence: of the database.
        clock: for pauses and times.
        webhook: where notifications go; default: nowhere.
    """

    def __init__(
        self, informer: Informer, persistence: Persistence, clock: Clock, webhook: Webhook | None = None
    ) -> None:
        self._informer = informer
        self._persistence = persistence
        self._clock = clock
        self._webhook = webhook
        self._barrier = Barrier("could not record", passing=(HistoryError,))
        self._entries: dict[str, _Entry] = {}
        self._known: dict[str, str] = {}
        """By uid the last states of those that are recorded, and not found yet."""
        self._newest: float | None = None
        """When the newest training that is recorded was created."""
        self._waiting: FairQueue[WaitingSweep] = FairQueue(namespace_of)
        self._news = anyio.Event()

    async def run(self, cluster: str, namespace: str | None) -> None:
        """Record until cancelled.

        Args:
            cluster: its identity.
            namespace: None for all.
        """
        self._known = await self._persistence.run(partial(present_sweeps, cluster=cluster, namespace=namespace)) or {}
        self._newest = await self._persistence.run(partial(newest_creation, cluster=cluster))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._find)
            await self._write(cluster)

    async def _find(self) -> None:
        """Those that are left have not been found, and what goes from now on is seen by the handler."""
        handler = ChangeHandler(self._on_change, self._on_delete, self._on_initial)
        await self._informer.add_handler(handler).wait_for_sync()
        gone, self._known = [*self._known], {}
        now = self._clock.now().timestamp()
        await self._persistence.run(partial(mark_sweeps_deleted, uids=gone, now=now))

    def _on_change(self, sweep: CachedObject) -> None:
        entry = self._entries.setdefault(sweep.uid, _Entry(sweep, self._known.pop(sweep.uid, "")))
        entry.sweep = sweep
        self._waiting.put(WaitingSweep(sweep.key.namespace, sweep.uid))
        self._news.set()

    def _on_initial(self, sweep: CachedObject) -> None:
        is_known = sweep.uid in self._known
        self._on_change(sweep)
        created = seconds(mapping_at(sweep.get("metadata")).get("creationTimestamp"))
        is_new = created is not None and self._newest is not None and created >= self._newest
        if not is_known and not is_new:
            self._entries[sweep.uid].state = sweep_row_of(sweep.decode())["state"]

    def _on_delete(self, sweep: CachedObject) -> None:
        self._on_change(sweep)
        self._entries[sweep.uid].deleted = self._clock.now().timestamp()

    async def _write(self, cluster: str) -> None:
        try:
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                await self._write_changes(cluster)
                await self._clock.sleep(_PAUSE)
        finally:
            with anyio.CancelScope(shield=True):
                async with move_on_after(self._clock, _LAST_SECONDS):
                    await self._write_changes(cluster)

    async def _write_changes(self, cluster: str) -> None:
        while self._waiting:
            some = self._waiting.take_some(_AT_ONCE)
            is_written = False
            try:
                await self._write_some(cluster, some)
                is_written = True
            finally:
                for waiting in some:
                    if not is_written:
                        self._waiting.put(waiting)
                    elif waiting not in self._waiting and self._entries[waiting.uid].deleted is not None:
                        del self._entries[waiting.uid]

    async def _write_some(self, cluster: str, some: Sequence[WaitingSweep]) -> None:
        prepared: list[PreparedSweep] = []
        for waiting in some:
            entry = self._entries[waiting.uid]
            with self._barrier.around(entry.sweep.key):
                sweep, notification = entry.sweep, self._notification(entry)
                prepared.append(await run_sync(prepared_sweep, sweep, entry.deleted, notification))
        write = partial(save_sweeps, cluster=cluster, now=self._clock.now().timestamp())
        for saved, _ in await self._persistence.write_all(write, prepared, lambda each: each.row["name"]):
            for each in saved:
                self._entries[each.row["uid"]].state = each.row["state"]

    def _notification(self, entry: _Entry) -> tuple[str, str] | None:
        """Occasion and text, where the sweep has come into a state that the webhook is notified of."""
        if self._webhook is None:
            return None
        sweep = entry.sweep.decode()
        state = sweep_row_of(sweep)["state"]
        is_wanted = state != entry.state and state in self._webhook.occasions
        return (state, text_about_sweep(sweep)) if is_wanted else None
