"""Writes progress and the condition Stalled, with its own field manager and at a limited rate (KEP-2779).

Server-side apply replaces all fields that this field manager has written before, so each write has all of them: the
progress of the training, the states of the steps beside it, and the condition.

With pushes every replica writes: what is newer wins, and the version of the TrainJob is a precondition of each write.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metadata import Condition
from trainer.api.metric_curve import CURVE, MetricCurve
from trainer.api.older_definition import OlderDefinition
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import Checkpoint, ConditionReason, ConditionType, TrainerStatus
from trainer.framework.status.status import Conditions
from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TerminalError,
)
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    find_condition,
    is_being_deleted,
    is_condition_true,
    metadata_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainer.kube.podlogs.instant import Instant
from trainer.progress.checkpoints import with_checkpoint
from trainer.progress.metrics import ProgressSeries
from trainer.progress.silence import no_report_since, shows_silence
from trainer.progress.train_jobs import REMAINING, ShownProgress, has_stopped, progress_of, shown_steps

log = get_logger(__name__)

FIELD_MANAGER = "trainer-progress"

_ATTEMPTS = 5
"""Attempts to write a posted status while others change the TrainJob."""


@dataclass(slots=True)
class _Account:
    """The pending writes of one TrainJob."""

    uid: str
    status: Callable[[ShownProgress], TrainerStatus | None] = lambda _: None
    checkpoint: Checkpoint | None = None
    """The last one that was submitted."""
    newest: Instant | None = None
    """Time of the newest message that has not been written."""
    written_at: float = -math.inf
    """When the last write began, by the monotonic clock."""
    written_early_at: float = -math.inf
    """When a write last skipped the interval."""
    is_closed: bool = False
    """Whether the TrainJob has ended."""


class ProgressWriter:
    """Writes submitted statuses, at most once per interval (seconds) and TrainJob; only the leader writes.

    `stall_of` is the message of a TrainJob's stall, or None; `steps_of` is what its status shows of the steps beside
    the training; `is_silent` says whether it reports nothing for unusually long; `curve_of` is the curve that it is to
    show, or None; `with_pushes` says whether `write_pushed` writes, too.
    """

    def __init__(
        self,
        manager: Manager,
        train_jobs: Lister,
        interval: float,
        series: ProgressSeries,
        stall_of: Callable[[Object], str | None],
        *,
        steps_of: Callable[[Object], Object],
        is_silent: Callable[[Object], bool],
        curve_of: Callable[[Object], MetricCurve | None] = lambda _: None,
        with_pushes: bool = False,
    ) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._train_jobs = train_jobs
        self._interval = interval
        self._series = series
        self._stall_of, self._steps_of, self._is_silent = stall_of, steps_of, is_silent
        self._curve_of = curve_of
        self._with_pushes = with_pushes
        self._accounts: dict[ObjectKey, _Account] = {}
        self._older_definition = OlderDefinition(manager.clock)
        self._controller = Controller(
            "trainjob-progress-status", manager, self.reconcile, max_concurrent_reconciles=10
        ).watches_nothing()

    def submit(
        self,
        key: ObjectKey,
        uid: str,
        status: Callable[[ShownProgress], TrainerStatus | None] | None,
        newest: Instant,
        *,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Queue a write of the progress, but not to a later TrainJob of the same name.

        `status` is called at the time of the write with what the TrainJob shows, which stays where it returns None.
        None in its place is news of a step beside the training; `newest` is the time of the newest message in it.
        `checkpoint` is the last one that is known; None where the TrainJob keeps what it shows.
        """
        account = self._accounts.get(key)
        if account is None or account.uid != uid:
            account = self._accounts[key] = _Account(uid)
        account.status = status or account.status
        account.checkpoint = checkpoint or account.checkpoint
        is_new, account.newest = account.newest is None, newest
        if is_new:
            self._enqueue_in_turn(key, account)

    def flush(self, key: ObjectKey, *, is_last: bool = False) -> None:
        """Write pending progress without waiting, at most once per interval, or at the end of the run."""
        account = self._accounts.get(key)
        if account is None or account.newest is None:
            return
        now = self._clock.monotonic()
        if is_last or now >= account.written_early_at + self._interval:
            account.written_early_at = now
            self._controller.enqueue(key)

    def refresh(self, key: ObjectKey, *, at_once: bool = False) -> None:
        """Queue a write because a stall has begun or ended, or at once that of a final curve."""
        account = self._accounts.get(key)
        if account is None or at_once:
            self._controller.enqueue(key)
        else:
            self._enqueue_in_turn(key, account)

    def close(self, key: ObjectKey) -> None:
        """Queue the last write of a TrainJob that has ended; later submissions are written too."""
        if (account := self._accounts.get(key)) is not None:
            account.is_closed = True
            self._enqueue_in_turn(key, account)

    def has_state_of(self, key: ObjectKey) -> bool:
        """Whether progress of this TrainJob was submitted, and it is neither closed nor forgotten."""
        return key in self._accounts

    def forget(self, key: ObjectKey) -> None:
        """Drop pending writes of a TrainJob that was deleted."""
        self._accounts.pop(key, None)

    async def reconcile(self, key: ObjectKey) -> None:
        """Write the progress of one TrainJob if its status differs."""
        obj = self._train_jobs.get(key)
        account = self._accounts.get(key)
        if obj is None or is_being_deleted(obj):
            self.forget(key)
            return
        if account is not None and account.uid != uid_of(obj):
            account = None
        fields = self._desired(obj, account)
        curve = self._desired_curve(obj)
        newest = account.newest if account is not None else None
        if account is not None:
            account.newest = None
        # Before the status: a manager that starts reads the log from the time in the status on.
        if curve is not None:
            obj = await self._write_curve(obj, curve, account, newest)
        if fields != _status(progress_of(obj), find_condition(obj, ConditionType.STALLED)) | shown_steps(obj):
            await self._write(obj, fields, account, newest)
        # Whoever deletes or replaces the TrainJob meanwhile takes the account away, or puts another in its place.
        is_done = account is not None and account.is_closed and account.newest is None
        if is_done and self._accounts.get(key) is account:
            del self._accounts[key]

    def _desired(self, obj: Object, account: _Account | None) -> Object:
        """The status that this field manager is to have; without news the progress stays."""
        status = account.status(ShownProgress.of(obj)) if account is not None and account.newest is not None else None
        stall, now, shown = self._stall_of(obj), self._clock.now(), progress_of(obj)
        progress, steps = shown if status is None else status.to_object(), self._steps_of(obj)
        if self._older_definition.is_present:
            steps = {}
        else:
            progress = with_checkpoint(progress, shown, account.checkpoint if account is not None else None, now)
        progress = _shown(obj, progress, is_stalled=stall is not None, is_silent=self._is_silent(obj))
        return _status(progress, _stalled(obj, stall, timestamp(now))) | steps

    def _desired_curve(self, obj: Object) -> str | None:
        """The value of the annotation that is to be written; None if there is nothing to write."""
        curve, shown = self._curve_of(obj), annotations_of(obj).get(CURVE)
        if curve is None or not (curve.points or curve.is_final or shown):
            return None
        text = curve.to_text(uid_of(obj))
        return None if text == shown else text

    async def _write_curve(self, obj: Object, text: str, account: _Account | None, newest: Instant | None) -> Object:
        """Write the curve; returns the TrainJob after it. A curve that is refused does not keep back the progress."""
        if account is not None:
            account.written_at = self._clock.monotonic()
        metadata: Object = {"uid": uid_of(obj), "annotations": {CURVE: text}}
        if self._with_pushes:
            metadata["resourceVersion"] = resource_version_of(obj)
        patch: Object = {"metadata": metadata}
        try:
            return await self._client.patch(
                TRAIN_JOBS, name_of(obj), patch, namespace_of(obj), field_manager=FIELD_MANAGER
            )
        except (BadRequestError, ForbiddenError, InvalidError, NotFoundError) as error:
            log.warning("cannot show the curve of a metric: may the manager patch TrainJobs?", error=str(error))
            return obj
        except Exception:
            if account is not None:
                account.newest = account.newest or newest
            raise

    async def _write(self, obj: Object, fields: Object, account: _Account | None, newest: Instant | None) -> None:
        if account is not None:
            account.written_at = self._clock.monotonic()
        try:
            await _apply(self._client, obj, fields, if_unchanged=self._with_pushes)
        except NotFoundError:
            log.info("dropped progress, the TrainJob is gone")
            return
        except InvalidError as error:
            self._count("error")
            raise TerminalError(f"the API server refuses the progress: {error}") from error
        except Exception as error:
            if self._older_definition.learn(error):
                log.warning(
                    "cannot show steps and checkpoints, the CRD of TrainJobs lacks fields for them: apply the CRDs of "
                    "this version",
                    error=str(error),
                )
            if not isinstance(error, ConflictError):
                self._count("error")
            if account is not None:
                account.newest = account.newest or newest
            raise
        self._count("success")
        if newest is not None:
            lag = self._clock.now().timestamp() - newest.seconds - newest.nanoseconds / 1e9
            self._series.lag_seconds.observe(max(lag, 0.0))

    def _enqueue_in_turn(self, key: ObjectKey, account: _Account) -> None:
        self._controller.enqueue(key, after=max(account.written_at + self._interval - self._clock.monotonic(), 0))

    def _count(self, result: str) -> None:
        self._series.status_writes.labels(result).inc()


async def write_pushed(client: Client, obj: Object, status: TrainerStatus, now: datetime) -> None:
    """Replace `trainerStatus` by what a pod has posted, unless the TrainJob shows something newer.

    The checkpoint that the TrainJob shows stays unless a later one is posted. No leadership is needed: `client` is
    `Manager.api_reader`.

    Raises:
        ConflictError: the TrainJob is another one now, or is changed all the time.
        KubeError: the API server refuses it.
    """
    for attempt in range(_ATTEMPTS):
        if ShownProgress.of(obj).is_later_than(status):
            return
        stalled = find_condition(obj, ConditionType.STALLED)
        progress = with_checkpoint(status.to_object(), progress_of(obj), status.checkpoint, now)
        progress = _shown(obj, progress, is_stalled=is_condition_true(obj, ConditionType.STALLED))
        try:
            await _apply(client, obj, _status(progress, stalled) | shown_steps(obj), if_unchanged=True)
        except ConflictError:
            present = await client.get(TRAIN_JOBS, name_of(obj), namespace_of(obj))
            if attempt == _ATTEMPTS - 1 or uid_of(present) != uid_of(obj):
                raise
            obj = present
        else:
            return


async def _apply(client: Client, obj: Object, fields: Object, *, if_unchanged: bool) -> None:
    # The uid keeps the progress of a deleted TrainJob from a new one of the same name.
    metadata = {"name": name_of(obj), "namespace": namespace_of(obj), "uid": uid_of(obj)}
    if if_unchanged:
        metadata["resourceVersion"] = resource_version_of(obj)
    applied: Object = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": metadata,
        "status": fields,
    }
    answer = await client.apply(TRAIN_JOBS, applied, field_manager=FIELD_MANAGER, force=True, subresource="status")
    # What Kubeflow Trainer (Go) has written belongs to its field manager, so that apply cannot remove it.
    outlived = REMAINING & progress_of(answer).keys() - progress_of(applied).keys()
    if outlived:
        removal = {"status": {"trainerStatus": dict.fromkeys(outlived)}}
        await client.patch(TRAIN_JOBS, name_of(obj), removal, namespace_of(obj), subresource="status")


def _shown(obj: Object, progress: Object, *, is_stalled: bool, is_silent: bool = False) -> Object:
    """The progress without the remaining time of a training that makes none, and with words about a silence."""
    lasts = {name: value for name, value in progress.items() if name not in REMAINING}
    if has_stopped(obj) or is_stalled:
        return lasts
    if is_silent and progress:
        since = no_report_since(str(progress.get("lastUpdatedTime") or ""))
        return lasts | {"estimatedRemainingTimeSummary": since}
    return lasts if shows_silence(progress) else progress


def _status(progress: Object, stalled: Object | None) -> Object:
    status: Object = {"trainerStatus": progress} if progress else {}
    return status | {"conditions": [stalled]} if stalled else status


def _stalled(obj: Object, stall: str | None, now: str) -> Object | None:
    """The condition Stalled; absent before the first stall, and False with the last stall's message after one."""
    shown = find_condition(obj, ConditionType.STALLED)
    if stall is None and (shown is None or shown.get("status") == "False"):
        return shown
    conditions = Conditions(_readable(shown), now, metadata_of(obj).get("generation"))
    if stall is not None:
        conditions.set(ConditionType.STALLED, holds=True, reason=ConditionReason.NO_PROGRESS, message=stall)
    else:
        message = str((shown or {}).get("message") or "")
        conditions.set(ConditionType.STALLED, holds=False, reason=ConditionReason.STALL_ENDED, message=message)
    (condition,) = conditions.to_list()
    return condition.to_object()


def _readable(condition: Object | None) -> list[Condition]:
    """The condition as a list; empty if it is absent or malformed."""
    try:
        return [Condition.from_object(condition)] if condition else []
    except InvalidObjectError:
        return []
