"""The page of one sweep with its trials: what it is pushed while it is open."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import anyio
import msgspec
from aiohttp import web
from anyio.abc import TaskGroup

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.store import CONTROLLER_UID, controller_uids
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, ObjectKey, key_of, mapping_at, uid_of
from trainer_dashboard.access.parties import Stream
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.live.board import PAUSE
from trainer_dashboard.live.event_stream import Changes, EventStream, event_stream
from trainer_dashboard.live.job_page import CHECK, notified
from trainer_dashboard.live.namespace_informers import under
from trainer_dashboard.live.versions import Versions
from trainer_dashboard.sweep.importance import importance_of
from trainer_dashboard.sweep.rows import page_of
from trainer_dashboard.sweep.trials import ended_trials, trial_of, trials_of

_IMPORTANCES: Final = 256
"""Answers that are kept, some KB each: one for each state of a sweep that somebody has looked at."""

_AS_OBJECTS: Final = 6
"""How many bytes a byte of JSON takes as objects, which are mostly points of curves."""


class SweepPages:
    """Streams for the pages of sweeps.

    Each sends `sweep` and `problems` when they have changed; `trials`, first with `all` of them, then with those that
    have `changed` and the numbers that are `gone`; `importance` when other trials have ended; and `gone` at its end,
    when the sweep is; and `problem` as the list does.
    """

    def __init__(self, sweeps: Informer, jobs: Informer, clock: Clock) -> None:
        self._sweeps = sweeps
        self._jobs = jobs
        self._clock = clock
        self._importances: BoundedDict[bytes, Object] = BoundedDict(_IMPORTANCES)
        self._trials: WeakValueDictionary[bytes, Versions[Object | None]] = WeakValueDictionary()
        """What is made of TrainJobs, by sweep and its spec, shared by the pages that show it."""

    async def stream(
        self, request: web.BaseRequest, key: ObjectKey, viewer: Viewer, slot: Stream
    ) -> web.StreamResponse:
        """Push all about a sweep, until it is deleted, or another has its name.

        Whether they may see the sweep itself is for the caller to ask at first; it ends when they may not any more.
        """
        async with event_stream(request, self._clock, viewer, slot, self._sweeps) as stream:
            await self._sweeps.wait_for_sync()
            await self._jobs.wait_for_sync()
            sweep = self._sweeps.lister.get(key)
            if sweep is not None:
                async with anyio.create_task_group() as tasks:
                    sweep = await self._follow(stream, viewer, sweep, tasks)
                    tasks.cancel_scope.cancel()
            if sweep is None:
                await stream.send("gone", {})
        return stream.response

    async def _follow(self, stream: EventStream, viewer: Viewer, sweep: Object, tasks: TaskGroup) -> Object | None:
        """Send what changes; returns None when the sweep is gone, and itself when its viewer may not see it."""
        key, uid, changes, page = key_of(sweep), uid_of(sweep), Changes(), _Page(stream)
        party = stream.slot.party
        shown = (
            (self._sweeps, lambda obj: obj.key == key),
            (self._jobs, lambda job: uid in controller_uids(job)),
        )
        with notified(changes, *shown), party.holding(0, end=stream.slot.end) as held:
            spec, trials = mapping_at(sweep, "spec"), self._trials_of(sweep)
            while (present := await self._present(stream, key, uid)) is not None and await viewer.may(
                "get", OPTIMIZATION_JOBS, key
            ):
                if mapping_at(present, "spec") != spec:
                    spec, trials = mapping_at(present, "spec"), self._trials_of(present)
                may_see = await viewer.may("list", TRAIN_JOBS, ObjectKey(key.namespace, ""))
                # Who writes in another namespace may name any owner there.
                jobs = [job for job in under(self._jobs, CONTROLLER_UID, uid) if job.key.namespace == key.namespace]
                made = await trials.of(uid, jobs) if may_see else []
                known = trials_of(present, [each for each in made if each is not None])
                problems = [] if may_see else [f"you may not list TrainJobs in the namespace {key.namespace}"]
                party.resize(held, _AS_OBJECTS * await page.send(present, known, problems))
                await self._weigh(page, present, ended_trials(present, known), tasks)
                await self._clock.sleep(PAUSE)
                async with move_on_after(self._clock, CHECK):
                    await changes.wait()
        return present

    def _trials_of(self, sweep: Object) -> Versions[Object | None]:
        spec = mapping_at(sweep, "spec")
        key = _digest([uid_of(sweep), spec])
        return self._trials.setdefault(key, Versions(partial(trial_of, spec)))

    async def _present(self, stream: EventStream, key: ObjectKey, uid: str) -> Object | None:
        await stream.turn()
        sweep = self._sweeps.lister.get(key)
        return sweep if sweep is not None and uid_of(sweep) == uid else None

    async def _weigh(self, page: _Page, sweep: Object, ended: Sequence[Object], tasks: TaskGroup) -> None:
        """Send the importance of the parameters, once it is known, for the trials that have ended."""
        spec = {"objectives": None, "parameters": None} | mapping_at(sweep, "spec")
        state = _digest([uid_of(sweep), spec["objectives"], spec["parameters"], ended])
        if page.weighed == state or page.is_weighing:
            return
        page.weighed = state
        known = self._importances.get(state)
        if known is not None:
            await page.stream.send("importance", known)
            return
        page.is_weighing = True

        async def weigh() -> None:
            try:
                found = await page.stream.slot.party.compute(importance_of, mapping_at(sweep, "spec"), ended)
            finally:
                page.is_weighing = False
            self._importances[state] = found
            await page.stream.send("importance", found)

        tasks.start_soon(weigh)


class _Page:
    """What one page has been sent."""

    def __init__(self, stream: EventStream) -> None:
        self.stream = stream
        self.weighed = b""
        """The state of the sweep whose importances it was sent, or will be."""
        self.is_weighing = False
        self._sent: dict[str, bytes] = {}
        self._trials: dict[int, bytes] | None = None

    async def send(self, sweep: Object, trials: Sequence[Object], problems: Sequence[str]) -> int:
        """Send what has changed; returns how many bytes the trials have as JSON."""
        await self.stream.turn()
        for name, content in (("sweep", page_of(sweep)), ("problems", problems)):
            digest = _digest(content)
            if self._sent.get(name) != digest:
                self._sent[name] = digest
                await self.stream.send(name, content)
        encoded = {each["number"]: msgspec.json.encode(each) for each in trials}
        present = {number: hashlib.blake2b(text, digest_size=16).digest() for number, text in encoded.items()}
        before, self._trials = self._trials, present
        if before is None:
            await self.stream.send("trials", {"all": trials})
        elif before != present:
            changed = [each for each in trials if before.get(each["number"]) != present[each["number"]]]
            await self.stream.send("trials", {"changed": changed, "gone": sorted(before.keys() - present.keys())})
        return sum(map(len, encoded.values()))


def _digest(content: object) -> bytes:
    # Of what many pages have been sent no page keeps a copy.
    return hashlib.blake2b(msgspec.json.encode(content), digest_size=16).digest()
