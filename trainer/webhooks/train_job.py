"""What admission says about a TrainJob."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio.lowlevel

from trainer.api import patterns
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import TrainJobStatus
from trainer.framework.plugin_api.errors import BuildError, RuntimeNotFoundError
from trainer.framework.plugin_api.review import AdmissionWarning, Review
from trainer.framework.status.status import is_finished
from trainer.kube.field_errors import invalid
from trainer.kube.objects import is_being_deleted, name_of
from trainer.webhooks.advice import advise_on_train_job
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
    """Everything that is wrong with a TrainJob, or that its author should know.

    A TrainJob whose runtime does not exist (yet) is accepted with a warning: it waits. An update is refused only for
    what it makes worse: an error that the stored TrainJob has as well does not keep anybody from suspending it, or from
    taking off a finalizer. One that has finished or is being deleted is not built any more, so neither is it on trial.

    Args:
        obj: the TrainJob with defaults, as it would be stored.
        old: what it replaces; None when it is created.
        pipeline: the plugins.
        runtimes: where its runtime is looked up; the snapshot that it was built on comes first.

    Raises:
        KubeError: the runtime could not be looked up.
    """
    if old is None:
        review = await _review(obj, None, pipeline, runtimes)
        return Review.of([*_name_errors(name_of(obj)), *review.errors, *review.warnings])
    old = _without_impossible_status(old)
    # Nothing about the shape of a spec that stays: an older version may have let it pass.
    errors = tuple(forbidden_changes(old, obj)) if is_spec_changed(old, obj) else ()
    if errors:
        return Review.of(errors)
    if is_being_deleted(obj) or _has_finished(old):
        return Review.of(set(_errors(obj)) - set(_errors(old)))
    review = await _review(obj, old, pipeline, runtimes)
    warnings = review.warnings if is_spec_changed(old, obj) else ()
    if not review.errors:
        return Review((), warnings)
    before = await _review(old, old, pipeline, runtimes)
    return Review.of([*(set(review.errors) - set(before.errors)), *warnings])


async def _review(obj: Object, old: Object | None, pipeline: Pipeline, runtimes: RuntimeSource) -> Review:
    try:
        train_job = _strictly(obj)
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
    # Other requests have their turn between reading and building, each of which takes long for the largest objects.
    await anyio.lowlevel.checkpoint()
    former = _tolerantly(old)
    await anyio.lowlevel.checkpoint()
    review = pipeline.review(train_job, runtime, former)
    return Review.of([*review.errors, *review.warnings, *advise_on_train_job(train_job, runtime)])


def _name_errors(name: object) -> Iterator[FieldError]:
    """The name begins host names; "" is one that the server has yet to make. Reading tells what is no text."""
    if isinstance(name, str) and name and not patterns.compiled(patterns.HOST_LABEL).search(name):
        yield invalid("metadata.name", name, patterns.WORDS[patterns.HOST_LABEL])


def _strictly(obj: Object) -> TrainJob:
    """The TrainJob as a user may write it; its status, which is ours, may come from a newer version.

    Raises:
        InvalidObjectError: fields are wrong or unknown.
    """
    train_job = TrainJob.from_object({name: value for name, value in obj.items() if name != "status"}, strict=True)
    if "status" not in obj:
        return train_job
    stored = _tolerantly(_without_impossible_status(obj))
    return stored if stored is not None else train_job


def _tolerantly(obj: Object | None) -> TrainJob | None:
    """A stored TrainJob; None when it cannot be read, perhaps because an older version has let it pass."""
    if obj is None:
        return None
    try:
        return TrainJob.from_object(obj)
    except InvalidObjectError:
        return None


def _without_impossible_status(obj: Object) -> Object:
    """A stored TrainJob as it is, unless no API server would have stored its status: a stranger has made it up."""
    status = obj.get("status")
    if status is None:
        return obj
    # Reading entries without number takes longer than all else.
    lists = [value for value in status.values() if isinstance(value, list)] if isinstance(status, dict) else []
    if isinstance(status, dict) and all(len(entries) <= _LONGEST_STATUS_LIST for entries in lists):
        with suppress(InvalidObjectError):
            TrainJobStatus.from_object(status)
            return obj
    return {name: value for name, value in obj.items() if name != "status"}


def _errors(obj: Object) -> tuple[FieldError, ...]:
    try:
        _strictly(obj)
    except InvalidObjectError as error:
        return error.errors
    return ()


def _has_finished(obj: Object) -> bool:
    train_job = _tolerantly(obj)
    return train_job is not None and is_finished(train_job)
