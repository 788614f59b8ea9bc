"""The recorder: follows the TrainJobs and sweeps of a cluster and writes what happens to them to the database.

Informers only say that something has changed; the writer looks at what there is now. What is written has the uid of
its TrainJob as key, and a log is read on from the position that was written together with its samples, so that a
restart loses nothing that the cluster still has, and doubles nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from math import ceil
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.explain import Snapshot
from trainer.framework.status.status import has_ended, state_word
from trainer.kube.barrier import Barrier
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.change_handler import ChangeHandler
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.events.compact import last_seen
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey, mapping_at
from trainer.kube.queue.fair_queue import FairQueue
from trainer.kube.resource import Resource
from trainer_dashboard.history.cluster_identity import cluster_of
from trainer_dashboard.history.cluster_view import ClusterView
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.entry import Entry
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.inquiries import Inquiries
from trainer_dashboard.history.log_tails import EndedLog, LogTails, ended_logs
from trainer_dashboard.history.metric_writer import MetricWriter
from trainer_dashboard.history.notifications import Notifier, Webhook, occasion_of, text_about
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.records import (
    PreparedTraining,
    Present,
    Training,
    mark_deleted,
    newest_creation,
    prepared,
    present_trainings,
    save_events,
    save_trainings,
)
from trainer_dashboard.history.retention import Retention, RetentionOptions
from trainer_dashboard.history.sweep_recorder import SweepRecorder
from trainer_dashboard.history.training import event_row, seconds
from trainer_dashboard.history.trial import is_trial
from trainer_dashboard.history.waiting import WaitingEvent, WaitingLog, WaitingTraining, namespace_of

log = get_logger(__name__)

PAUSE = 1.0
"""Seconds between two writes of what has changed."""
_AT_ONCE = 100
"""TrainJobs in one transaction."""
_BYTES_AT_ONCE = 1024 * 1024
"""Bytes of TrainJobs and JobSets in one transaction, which take a second or two to be searched for secrets."""
_READERS = 8
"""Logs whose last lines are read at once."""
_EVENTS_AT_ONCE = 500
"""Events in one transaction."""
WAITING_EVENTS = 50_000
"""Events that wait for the database, of a kilobyte each; the oldest of the namespace that has most go first."""
_CHECK = 10.0
"""Seconds between two transactions at least."""
_LAST_SECONDS = 10.0
"""Time for the last write, when the recorder is ended."""


class Recorder:
    """Records one cluster while `run` does.

    Args:
        client: its TrainJobs are converted to v2alpha1.
        database: with tables of the present version.
        retention: what is forgotten, and when.
        namespace: None for all.
        server: address of the API server, which stands for the cluster where its namespaces may not be read.
        webhook: where notifications go; default: nowhere.
        optimization_jobs: as the cluster serves them. Default: as v2alpha1.
        clock: for pauses and times.
    """

    def __init__(
        self,
        client: Client,
        database: Database,
        retention: RetentionOptions,
        *,
        namespace: str | None = None,
        server: str = "",
        webhook: Webhook | None = None,
        optimization_jobs: Resource = OPTIMIZATION_JOBS,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._server = server
        self._webhook = webhook
        self._database = database
        self._namespace = namespace
        self._clock = clock or SystemClock()
        self._view = ClusterView(client, self._clock, namespace, optimization_jobs)
        self._persistence = Persistence(database, self._clock)
        self._sweeps = SweepRecorder(self._view.sweeps, self._persistence, self._clock, webhook)
        self._metrics = MetricWriter(client, self._persistence, self._clock)
        self._retention = retention
        self._tails = LogTails(client, database, self._persistence, self._clock)
        self._inquiries = Inquiries(client)
        self._barrier = Barrier("could not record", passing=(HistoryError,))
        self._entries: dict[str, Entry] = {}
        self._uids: dict[ObjectKey, set[str]] = {}
        """By name; several where one was deleted, whose pods are not gone, and another has its name."""
        self._known: dict[str, Present] = {}
        self._newest: float | None = None
        """When the newest training that is recorded was created."""
        self._waiting: FairQueue[WaitingTraining] = FairQueue(namespace_of)
        """Trainings that have changed, or whose pods have."""
        self._changed: set[str] = set()
        """Those of them that are to be written; of the others the pods have changed."""
        self._unsaved: set[str] = set()
        """Trainings that are being written, or were when the writer was cancelled."""
        self._events: dict[WaitingEvent, dict[str, Any]] = {}
        self._event_turns: FairQueue[WaitingEvent] = FairQueue(namespace_of, WAITING_EVENTS, drops_oldest=True)
        self._unsaved_events: list[dict[str, Any]] = []
        self._logs: dict[WaitingLog, EndedLog] = {}
        self._log_turns: FairQueue[WaitingLog] = FairQueue(namespace_of)
        self._read: dict[str, dict[tuple[str, str], str]] = {}
        """By training the run of each node's container whose last lines were asked for."""
        self._news, self._new_logs = anyio.Event(), anyio.Event()

    async def run(self, *, started: Callable[[], Awaitable[None]]) -> None:
        """Record until cancelled; `started` is called when all that existed is known.

        Raises:
            HistoryError: another process records this cluster, or the file of the database is lost.
            KubeError: the cluster does not say which one it is.
        """
        cluster = await cluster_of(self._client, self._server)
        lock = ExitStack()
        await run_sync(lock.enter_context, self._database.recording(cluster))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._view.run)
                await self._begin(cluster)
                for _ in range(_READERS):
                    tasks.start_soon(self._keep_logs)
                tasks.start_soon(self._metrics.run)
                tasks.start_soon(self._sweeps.run, cluster, self._namespace)
                tasks.start_soon(self._check_database)
                tasks.start_soon(Retention(self._persistence, self._retention, cluster, self._clock).run)
                if self._webhook is not None:
                    tasks.start_soon(Notifier(self._webhook, self._persistence, cluster, self._clock).run)
                await started()
                await self._write(cluster, tasks)
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(lock.close)

    async def _begin(self, cluster: str) -> None:
        for problem in await self._view.wait_for_sync():
            log.warning("recording without what cannot be watched", problem=problem)
        present = partial(present_trainings, cluster=cluster, namespace=self._namespace)
        self._known = await self._persistence.run(present) or {}
        self._newest = await self._persistence.run(partial(newest_creation, cluster=cluster))
        view = self._view
        jobs = view.jobs.add_handler(ChangeHandler(self._on_job_change, self._on_job_delete, self._on_initial_job))
        view.jobsets.add_handler(ChangeHandler(self._on_jobset_change, self._on_jobset_change))
        view.pods.add_handler(ChangeHandler(self._on_pod_change, self._on_pod_change))
        view.events.add_handler(ChangeHandler(self._on_event_change, lambda _: None))
        await jobs.wait_for_sync()
        # Those that are left have not been found, and what goes from now on is seen by the handler.
        now = self._clock.now().timestamp()
        await self._persistence.run(partial(mark_deleted, uids=[*self._known], now=now))

    def _on_job_change(self, job: CachedObject) -> None:
        entry = self._entries.get(job.uid)
        if entry is None:
            known = self._known.pop(job.uid, None)
            entry = Entry(job, self._view.jobset_of(job))
            if known is not None:
                entry.creator, entry.is_recorded, entry.state = known.creator, True, known.state
            self._entries[job.uid] = entry
            self._uids.setdefault(job.key, set()).add(job.uid)
        entry.job = job
        self._note(job.uid)

    def _on_initial_job(self, job: CachedObject) -> None:
        is_known = job.uid in self._known
        self._on_job_change(job)
        created = seconds(mapping_at(job.get("metadata")).get("creationTimestamp"))
        is_new = created is not None and self._newest is not None and created >= self._newest
        if not is_known and not is_new:
            self._entries[job.uid].state = state_word(job)

    def _on_job_delete(self, job: CachedObject) -> None:
        self._on_job_change(job)
        self._entries[job.uid].deleted = self._clock.now().timestamp()

    def _on_jobset_change(self, jobset: CachedObject) -> None:
        for uid in self._uids.get(jobset.key, ()):
            if jobset.controller is not None and jobset.controller.uid == uid:
                self._entries[uid].jobset = jobset
                self._note(uid)

    def _on_pod_change(self, pod: CachedObject) -> None:
        key = ObjectKey(pod.key.namespace, pod.labels.get(JOBSET_NAME, ""))
        for uid in self._uids.get(key, ()):
            self._waiting.put(WaitingTraining(key.namespace, uid))
        self._news.set()

    def _on_event_change(self, event: CachedObject) -> None:
        job = self._view.job_about(event)
        obj = event.decode()
        last = last_seen(obj)
        if job is None or last < str(mapping_at(job.get("metadata")).get("creationTimestamp") or "")[: len(last)]:
            return
        key = WaitingEvent(job.key.namespace, job.uid, event.uid)
        self._events[key] = event_row(obj, job.uid)
        self._put_event(key)
        self._news.set()

    def _put_event(self, key: WaitingEvent) -> None:
        if (dropped := self._event_turns.put(key)) is not None:
            del self._events[dropped]

    def _note(self, uid: str) -> None:
        self._changed.add(uid)
        self._waiting.put(WaitingTraining(self._entries[uid].job.key.namespace, uid))
        self._news.set()

    async def _write(self, cluster: str, tasks: TaskGroup) -> None:
        try:
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                await self._write_changes(cluster, tasks)
                await self._clock.sleep(PAUSE)
        finally:
            with anyio.CancelScope(shield=True):
                async with move_on_after(self._clock, _LAST_SECONDS):
                    await self._write_changes(cluster, None)
                    await self._metrics.write()

    async def _write_changes(self, cluster: str, tasks: TaskGroup | None) -> None:
        """Write what waits now, in turns with what comes meanwhile; without tasks no log is read."""
        for uid in self._unsaved & self._entries.keys():
            self._note(uid)
        self._unsaved = set()
        size = sum(self._entries[uid].size for uid in self._changed & self._entries.keys())
        parts = max(len(self._waiting) / _AT_ONCE + size / _BYTES_AT_ONCE, len(self._event_turns) / _EVENTS_AT_ONCE)
        for _ in range(max(ceil(parts), 1)):
            some = self._take_some()
            self._unsaved = self._changed.intersection(some)
            self._changed -= self._unsaved
            entries = {uid: self._entries[uid] for uid in some if uid in self._entries}
            await self._write_trainings(cluster, [entry for uid, entry in entries.items() if uid in self._unsaved])
            self._unsaved = set()
            await self._write_events()
            if tasks is not None:
                for uid, entry in entries.items():
                    with self._barrier.around(entry.job.key):
                        await self._observe(uid, entry, tasks)

    def _take_some(self) -> list[str]:
        """The trainings that are next, as many as are written in a second or two."""
        taken, size = list[str](), 0
        while self._waiting and len(taken) < _AT_ONCE and size < _BYTES_AT_ONCE:
            _, uid = self._waiting.take()
            taken.append(uid)
            if uid in self._changed and uid in self._entries:
                size += self._entries[uid].size
        return taken

    async def _write_trainings(self, cluster: str, entries: list[Entry]) -> None:
        await self._inquiries.make(entries)
        trainings: list[PreparedTraining] = []
        for entry in entries:
            with self._barrier.around(entry.job.key):
                trainings.append(await run_sync(prepared, self._training(entry)))
        write = partial(save_trainings, cluster=cluster, now=self._clock.now().timestamp())
        for some, written in await self._persistence.write_all(write, trainings, lambda each: each.training.job.key):
            for each, versions in zip(some, written, strict=True):
                job = each.training.job
                entry = self._entries[job.uid]
                entry.is_recorded, entry.state, entry.written = True, state_word(job), versions
                entry.related = ()

    def _training(self, entry: Entry) -> Training:
        return Training(
            entry.job,
            entry.jobset,
            self._view.runtime_of(entry.job) if not entry.is_recorded else None,
            entry.creator or "",
            entry.deleted,
            entry.written,
            entry.related,
            self._notification(entry),
        )

    def _notification(self, entry: Entry) -> tuple[str, str] | None:
        """Occasion and text, where the TrainJob has come into a state that the webhook is notified of."""
        state = state_word(entry.job)
        if self._webhook is None or state == entry.state or state not in self._webhook.occasions:
            return None
        job = entry.job.decode()
        if is_trial(job) and not self._webhook.with_trials:
            return None
        objects: list[Object] = []
        if entry.jobset is not None:
            jobset = entry.jobset.decode()
            objects = [jobset, *self._view.pods_of(entry.job.key, jobset)]
        return occasion_of(job, state), text_about(Snapshot(job, self._clock.now(), objects))

    async def _write_events(self) -> None:
        waiting = []
        for key in self._event_turns.take_some(_EVENTS_AT_ONCE):
            row = self._events.pop(key)
            if self._is_recorded(key.uid):
                self._unsaved_events.append(row)
            elif key.uid in self._entries:
                waiting.append((key, row))
        for key, row in waiting:
            self._events[key] = row
            self._put_event(key)
        await self._persistence.write_all(save_events, self._unsaved_events, lambda row: row["uid"])
        self._unsaved_events = []

    def _is_recorded(self, uid: str) -> bool:
        entry = self._entries.get(uid)
        return entry is not None and entry.is_recorded

    async def _observe(self, uid: str, entry: Entry, tasks: TaskGroup) -> None:
        """Follow the logs of a training; one that was deleted is observed until its pods are gone."""
        if not entry.is_recorded:
            if entry.deleted is not None and uid not in self._changed:  # it could not be written
                self._forget(uid, entry)
            return
        job, pods = entry.job.decode(), []
        if entry.jobset is not None:
            jobset = entry.jobset.decode()
            pods = self._view.pods_of(entry.job.key, jobset)
            for ended in ended_logs(job, jobset, pods):
                read, place = self._read.setdefault(uid, {}), (ended.node, ended.container.container)
                if read.get(place) != ended.run:
                    read[place] = ended.run
                    key = WaitingLog(entry.job.key.namespace, uid, *place)
                    self._logs[key] = ended
                    self._log_turns.put(key)
                    self._new_logs.set()
        is_over = entry.deleted is not None or has_ended(job)
        await self._metrics.observe(job, uid, pods, tasks, is_over=is_over)
        if entry.deleted is not None and not pods and uid not in self._changed:  # its deletion is written
            self._forget(uid, entry)

    def _forget(self, uid: str, entry: Entry) -> None:
        self._metrics.forget(uid)
        del self._entries[uid]
        same = self._uids[entry.job.key]
        same.discard(uid)
        if not same:
            del self._uids[entry.job.key]
        self._read.pop(uid, None)

    async def _check_database(self) -> None:
        """Find out in time, also while there is nothing to write, that the database is lost, or recorded by another."""
        while True:
            await self._clock.sleep(_CHECK)
            await self._persistence.run(lambda _: None)

    async def _keep_logs(self) -> None:
        while True:
            while not self._log_turns:
                if self._new_logs.is_set():
                    self._new_logs = anyio.Event()
                await self._new_logs.wait()
            ended = self._logs.pop(self._log_turns.take())
            is_kept = False
            with self._barrier.around(f"{ended.container.namespace}/{ended.container.pod}"):
                is_kept = await self._tails.keep(ended)
            if is_kept:
                continue
            read, place = self._read.get(ended.uid, {}), (ended.node, ended.container.container)
            if read.get(place) == ended.run:
                del read[place]  # another attempt, when something changes
