"""Which fields of an existing TrainJob may change.

| field of `spec` | may change |
|---|---|
| suspend, ttlSecondsAfterFinished | always, like all metadata |
| managedBy, activeDeadlineSeconds | never |
| labels, annotations, jobSetMetadata; nodeSelector, tolerations, schedulingGates, metadata and what says who changes
  them of podSpecOverrides | before the Jobs exist, then while suspended |
| trainer.numNodes of an elastic training | between its bounds, until it ends |
| trainer.numNodes of any other training, trainer.resourcesPerNode, maxRestarts | before the Jobs exist, then while
  suspended |
| everything else | before the Jobs exist |

The Jobs exist when the condition Created is true. While suspended means: suspended before or after the change, and no
Job has active pods; JobSet allows the same changes then. For trainer and maxRestarts it means: suspended before the
change; JobSet never allows that one, so a suspended JobSet is created again once its pods have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from trainer.api.rules import (
    CREATED_IMMUTABLE,
    DEADLINE_IMMUTABLE,
    MANAGED_BY_IMMUTABLE,
    OVERRIDES_IMMUTABLE,
    RESTARTS_IMMUTABLE,
    SUSPENDED_ONLY,
    TRAINER_IMMUTABLE,
)
from trainer.api.trainjob_status import ConditionType
from trainer.framework.deploying.comparison import differences
from trainer.kube.field_errors import MOST_ERRORS, FieldError, forbidden, invalid
from trainer.kube.objects import Object, is_condition_true
from trainer.webhooks.defaults import default_train_job

_IMMUTABLE = {
    "managedBy": MANAGED_BY_IMMUTABLE,
    "activeDeadlineSeconds": DEADLINE_IMMUTABLE,
}
_RESTARTS = "maxRestarts"
_FIXED_ONCE_CREATED = ("runtimeRef", "trainer", "datasetConfig", "modelConfig", _RESTARTS)
_SIZE = ("numNodes", "resourcesPerNode")
_SCHEDULING = ("labels", "annotations", "jobSetMetadata")
_SCHEDULING_OF_PODS = (
    "nodeSelector",
    "tolerations",
    "tolerationPolicy",
    "schedulingGates",
    "metadata",
    "manager",
    "time",
)
_OVERRIDES = "podSpecOverrides"


def forbidden_changes(old: Object, new: Object) -> Iterator[FieldError]:
    """The changed fields of a TrainJob that are immutable, or immutable now; `old` has the status."""
    before, after = _spec(old), _spec(new)
    for name, rule in _IMMUTABLE.items():
        if before.get(name) != after.get(name):
            yield invalid(f"spec.{name}", after.get(name), rule)
    if not is_condition_true(old, ConditionType.CREATED):
        return
    yield from _out_of_bounds(old, before, after)
    if not any(is_condition_true(old, end) for end in (ConditionType.COMPLETE, ConditionType.FAILED)):
        before = _with_restarts(_resized(old, before, after), after)
    for name in _FIXED_ONCE_CREATED:
        yield from (
            forbidden(path, _immutable(path)) for path in changes(before.get(name), after.get(name), f"spec.{name}")
        )
    former, present = _without_scheduling(before), _without_scheduling(after)
    if former != present:
        yield forbidden(f"spec.{_OVERRIDES}", OVERRIDES_IMMUTABLE)
    elif before.get(_OVERRIDES) != after.get(_OVERRIDES):
        yield from _not_now(old, before, after, _OVERRIDES)
    for name in _SCHEDULING:
        if before.get(name) != after.get(name):
            yield from _not_now(old, before, after, name)


def is_spec_changed(old: Object, new: Object) -> bool:
    """Whether the spec changes; an added default is no change."""
    return _spec(old) != _spec(new)


def _out_of_bounds(old: Object, before: Object, after: Object) -> Iterator[FieldError]:
    bounds, wanted = (old.get("status") or {}).get("scale"), _nodes(after)
    if not bounds or not isinstance(wanted, int) or wanted == _nodes(before):
        return
    least, most = bounds["minNodes"], bounds["maxNodes"]
    if not least <= wanted <= most:
        yield invalid("spec.trainer.numNodes", wanted, f"must be between {least} and {most} for this elastic training")


def _resized(old: Object, before: Object, after: Object) -> Object:
    """The former spec, with number and resources of the nodes that may change."""
    wanted = after.get("trainer")
    if not isinstance(wanted, dict):
        return before
    is_elastic, is_suspended = bool((old.get("status") or {}).get("scale")), bool(before.get("suspend"))
    may_change = {
        "numNodes": _nodes(after) is not None if is_elastic else is_suspended,
        "resourcesPerNode": is_suspended,
    }
    changed = {name for name in _SIZE if may_change[name]}
    kept = {name: value for name, value in (before.get("trainer") or {}).items() if name not in changed}
    trainer = kept | {name: wanted[name] for name in changed & wanted.keys()}
    return before | {"trainer": trainer} if changed else before


def _with_restarts(before: Object, after: Object) -> Object:
    """The former spec, with the number of restarts that may change while it is suspended."""
    if not before.get("suspend"):
        return before
    kept = {name: value for name, value in before.items() if name != _RESTARTS}
    return kept | {name: after[name] for name in (_RESTARTS,) if name in after}


def _immutable(path: str) -> str:
    """The rule for a path: it says what may change while suspended of the trainer, and that the restarts may."""
    if path == f"spec.{_RESTARTS}":
        return RESTARTS_IMMUTABLE
    place = path.removeprefix("spec.trainer")
    is_of_size = not place or place.lstrip(".").split(".")[0] in _SIZE
    return TRAINER_IMMUTABLE if is_of_size else CREATED_IMMUTABLE


def _nodes(spec: Object) -> Any:
    trainer = spec.get("trainer")
    return trainer.get("numNodes") if isinstance(trainer, dict) else None


def _not_now(old: Object, before: Object, after: Object, name: str) -> Iterator[FieldError]:
    if not (before.get("suspend") or after.get("suspend")):
        yield forbidden(f"spec.{name}", SUSPENDED_ONLY)
        return
    jobs = [job for job in (old.get("status") or {}).get("jobsStatus") or [] if job.get("active")]
    if jobs:
        active = ", ".join(str(job.get("name")) for job in jobs)
        yield forbidden(
            f"spec.{name}", f"cannot be changed while pods of {active} are active; wait until they are gone"
        )


def _without_scheduling(spec: Object) -> list[Object]:
    """The overrides without what may change while suspended; entries of queueing systems have nothing else."""
    present = spec.get(_OVERRIDES)
    overrides = [
        {name: value for name, value in override.items() if name not in _SCHEDULING_OF_PODS}
        for override in (present if isinstance(present, list) else [])
        if isinstance(override, dict)
    ]
    return [override for override in overrides if override.keys() - {"targetJobs"}]


def changes(before: object, after: object, path: str) -> list[str]:
    """Paths of what differs, not many more than are reported; `path` where only the order does."""
    if before == after:
        return []
    both = (differences(before, after, path), differences(after, before, path))
    return sorted({each for paths in both for each in islice(paths, MOST_ERRORS + 1)}) or [path]


def _spec(obj: Object) -> Object:
    """The spec with defaults and without nulls."""
    spec = default_train_job(obj).get("spec")
    if not isinstance(spec, dict):
        return {}
    return {name: value for name, value in spec.items() if value is not None and (name != "suspend" or value)}
