"""Validates a TrainJob: the rules of updates, its schema, and a trial build on its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.lowlevel

from trainer.api import patterns
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import TrainJobStatus
from trainer.framework.plugin_api.errors import AdmissionWarning, BuildError, Review
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError
from trainer.framework.status.status import has_ended
from trainer.kube.field_errors import invalid
from trainer.kube.objects import is_being_deleted, name_of
from trainer.webhooks.admission_warnings import train_job_warnings
from trainer.webhooks.mutability import forbidden_changes, is_spec_changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.framework.pipeline import Pipeline
    from trainer.framework.runtimes.runtimes import RuntimeSource
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object


_LONGEST_STATUS_LIST = 1000
"""Entries, several times what the schema allows."""


async def review_train_job(obj: Object, old: Object | None, pipeline: Pipeline, runtimes: RuntimeSource) -> Review:
    """Errors that refuse a TrainJob, and warnings for its author.

    A TrainJob whose runtime does not exist yet is accepted with a warning. An update is refused only for errors that
    the stored TrainJob does not have, so that it can always be suspended or lose a finalizer. A TrainJob that has
    finished or is being deleted is not built again, so no trial build checks it.
    """
    if old is None:
        review = await _review(obj, None, None, pipeline, runtimes)
        return Review.of([*_name_errors(name_of(obj)), *review.errors, *review.warnings])
    status = _read_status(old)
    if status is None:
        old = _without_status(old)
    is_changed = is_spec_changed(old, obj)
    # The schema of an unchanged spec is not checked: an older version may have accepted it.
    errors = tuple(forbidden_changes(old, obj)) if is_changed else ()
    if errors:
        return Review.of(errors)
    if is_being_deleted(obj) or has_ended(old):
        wrong = set(_schema_errors(obj))
        return Review.of(wrong - set(_schema_errors(old)) if wrong else ())
    review = await _review(obj, old, status, pipeline, runtimes)
    warnings = review.warnings if is_changed else ()
    if not review.errors:
        return Review((), warnings)
    before = await _review(old, old, status, pipeline, runtimes)
    return Review.of([*(set(review.errors) - set(before.errors)), *warnings])


async def _review(
    obj: Object, old: Object | None, status: TrainJobStatus | None, pipeline: Pipeline, runtimes: RuntimeSource
) -> Review:
    """The findings about `obj`; the API server gives it the status of `old`."""
    try:
        train_job = _read(obj, status, strict=True)
    except InvalidObjectError as error:
        return Review.of(error.errors)
    try:
        runtime = await runtimes.of(train_job)
    except RuntimeNotFoundError as error:
        place = f" in namespace {error.key.namespace}" if error.key.namespace else ""
        hint = error.present.hint(error.key.name)
        text = f"there is no {error.kind} {error.key.name}{place} yet; the TrainJob waits until there is one{hint}"
        return Review.of([AdmissionWarning("spec.runtimeRef.name", text)])
    except BuildError as error:
        return Review.of(error.errors)
    # Reading and building the largest objects each take long: other requests run in between.
    await anyio.lowlevel.checkpoint()
    former = train_job if obj is old else _read_stored(old, status)
    await anyio.lowlevel.checkpoint()
    review = pipeline.review(train_job, runtime, former)
    return Review.of([*review.errors, *review.warnings, *train_job_warnings(train_job, runtime)])


def _name_errors(name: object) -> Iterator[FieldError]:
    """The name begins host names; an empty one will be generated, and one that is no text fails the schema."""
    if isinstance(name, str) and name and not patterns.compiled(patterns.HOST_LABEL).search(name):
        yield invalid("metadata.name", name, patterns.WORDS[patterns.HOST_LABEL])


def _read(obj: Object, status: TrainJobStatus | None, *, strict: bool) -> TrainJob:
    """A TrainJob with this status."""
    train_job = TrainJob.from_object(_without_status(obj), strict=strict)
    return train_job if status is None else train_job.model_copy(update={"status": status})


def _read_stored(obj: Object | None, status: TrainJobStatus | None) -> TrainJob | None:
    """A stored TrainJob; None when it cannot be read, perhaps because an older version has accepted it."""
    try:
        return None if obj is None else _read(obj, status, strict=False)
    except InvalidObjectError:
        return None


def _read_status(obj: Object) -> TrainJobStatus | None:
    """The status of a stored TrainJob; None if no API server would have stored it: the request is forged."""
    status = obj.get("status")
    if not isinstance(status, dict):
        return None
    # Reading unbounded lists would take longer than everything else.
    if any(isinstance(value, list) and len(value) > _LONGEST_STATUS_LIST for value in status.values()):
        return None
    try:
        return TrainJobStatus.from_object(status)
    except InvalidObjectError:
        return None


def _without_status(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "status"}


def _schema_errors(obj: Object) -> tuple[FieldError, ...]:
    try:
        TrainJob.from_object(_without_status(obj), strict=True)
    except InvalidObjectError as error:
        return error.errors
    return ()
