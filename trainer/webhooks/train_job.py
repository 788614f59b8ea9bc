"""Validates a TrainJob: the rules of updates, its schema, and a trial build on its runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import perf_counter

import anyio.lowlevel

from trainer.api import patterns
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import Runtime
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import TrainJobStatus
from trainer.framework.building.template import shell_operator
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import AdmissionWarning, BuildError, Review
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError, RuntimeSource
from trainer.framework.status.status import has_ended
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object, is_being_deleted, name_of
from trainer.kube.quantity import quantity_advice
from trainer.webhooks.mutability import forbidden_changes, is_spec_changed
from trainer.webhooks.runtime import is_deprecated

_LONGEST_NAME = 63
"""Characters of a resource name in a warning."""
_LONG = 0.002
"""Seconds after which a review lets others run."""
_LONGEST_STATUS_LIST = 1000
"""Entries, several times what the schema allows."""


async def review_train_job(obj: Object, old: Object | None, pipeline: Pipeline, runtimes: RuntimeSource) -> Review:
    """Errors that refuse a TrainJob, and warnings for its author.

    A TrainJob whose runtime does not exist yet is accepted with a warning. An update is refused only for errors that
    the stored TrainJob does not have, so that it can always be suspended or lose a finalizer. A TrainJob that has
    finished or is being deleted is not built again, so no trial build checks it.
    """
    if old is None:
        review, wrong_name = await _review(obj, None, None, pipeline, runtimes), [*_name_errors(name_of(obj))]
        return Review.of([*wrong_name, *review.errors, *review.warnings]) if wrong_name else review
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
    began = perf_counter()
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
    if perf_counter() - began > _LONG:
        await anyio.lowlevel.checkpoint()
    former = train_job if obj is old else _read_stored(old, status)
    if perf_counter() - began > _LONG:
        await anyio.lowlevel.checkpoint()
    review, warnings = pipeline.review(train_job, runtime, former), [*_warnings(train_job, runtime)]
    return Review.of([*review.errors, *review.warnings, *warnings]) if warnings else review


def _name_errors(name: object) -> Iterator[FieldError]:
    """The name begins host names; an empty one will be generated, and one that is no text fails the schema."""
    if isinstance(name, str) and name and not patterns.compiled(patterns.HOST_LABEL).search(name):
        yield invalid("metadata.name", name, patterns.WORDS[patterns.HOST_LABEL])


def _read(obj: Object, status: TrainJobStatus | None, *, strict: bool) -> TrainJob:
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


def _warnings(train_job: TrainJob, runtime: Runtime) -> Iterator[AdmissionWarning]:
    """The warnings for a TrainJob; plugins add theirs by `CustomValidation`."""
    if is_deprecated(runtime):
        text = f"{runtime.kind} {runtime.metadata.name} is deprecated and will be removed; use another runtime"
        yield AdmissionWarning("spec.runtimeRef.name", text)
    trainer = train_job.spec.trainer
    yield from _ignored_operator("spec.trainer.command", trainer.command if trainer else None)
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        for position, container in enumerate(override.containers or []):
            path = f"spec.podSpecOverrides[{index}].containers[{position}].command"
            yield from _ignored_operator(path, container.command)


def _ignored_operator(path: str, command: list[str] | None) -> Iterator[AdmissionWarning]:
    """A command of one item is split into words as by a shell, but not run by one."""
    if command is None or len(command) != 1 or not re.search(r"\s", command[0]):
        return
    operator = shell_operator(command[0])
    if operator is not None:
        text = (
            f'is not run by a shell, so {operator} is passed on as a plain word; write ["sh", "-c", "..."] for a shell'
        )
        yield AdmissionWarning(path, text)


def quantity_warnings(obj: Object) -> Iterator[str]:
    """Warnings that say what to write instead of a quantity such as 200MB.

    The API server checks the schema before it calls the validating webhook, and says only which pattern does not match;
    the warnings of the mutating webhook are shown with that.
    """
    resources: object = obj
    for name in ("spec", "trainer", "resourcesPerNode"):
        resources = resources.get(name) if isinstance(resources, dict) else None
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) if isinstance(resources, dict) else None
        for name, amount in amounts.items() if isinstance(amounts, dict) else ():
            if isinstance(amount, str) and (advice := quantity_advice(amount)):
                yield f"spec.trainer.resourcesPerNode.{kind}[{str(name)[:_LONGEST_NAME]}]: {amount}: {advice}"
