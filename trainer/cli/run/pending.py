"""Why a TrainJob is Pending, in the sentence of `trainer explain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import State
from trainer.cli.jobs.state import JobState
from trainer.explain import Cause, explain
from trainer.explain.reading import SnapshotReader
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import KubeError
from trainer.kube.objects import ObjectKey

_PAUSE_SECONDS = 5.0
"""Between two answers, each of which takes a few requests."""


class PendingCause:
    """Finds the cause of each message with which a TrainJob is Pending.

    Args:
        client: reads what an explanation is made of.
        job: the TrainJob.
        clock: for pauses.
        on_found: called when a cause was looked for; with None when there is none, or none that is new.
    """

    def __init__(self, client: Client, job: ObjectKey, clock: Clock, on_found: Callable[[Cause | None], None]) -> None:
        self._client = client
        self._job = job
        self._clock = clock
        self._on_found = on_found
        self._asked = ""
        self._changed = anyio.Event()
        self._causes: dict[str, Cause | None] = {}
        self._found: set[str] = set()

    def shown(self, state: JobState) -> JobState | None:
        """The state with the cause in place of its message; None until `on_found` is called."""
        if state.word != State.PENDING or not state.message:
            return state
        if state.explanation not in self._causes:
            self._asked = state.explanation
            self._changed.set()
            return None
        cause = self._causes[state.explanation]
        return state if cause is None else replace(state, reason=cause.reason, message=cause.message)

    async def run(self) -> None:
        """Look for causes until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            asked = self._asked
            cause = await self._first_cause()
            self._causes = {asked: cause}
            is_new = cause is not None and cause.message not in self._found
            self._found |= {cause.message} if cause is not None else set()
            self._on_found(cause if is_new else None)
            await self._clock.sleep(_PAUSE_SECONDS)

    async def _first_cause(self) -> Cause | None:
        try:
            job = await self._client.get(TRAIN_JOBS, self._job.name, self._job.namespace)
            answer = explain(await SnapshotReader(self._client, job, self._clock).snapshot())
        except (KubeError, InvalidObjectError):
            return None  # the message of the TrainJob says it
        return next(iter(answer.causes), None)
