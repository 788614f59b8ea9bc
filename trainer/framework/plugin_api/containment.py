"""What keeps a defect of a plugin from anything but its own TrainJob: what it raises, and what it returns.

A result that is not what the hook promises would otherwise fail far away from the plugin, or take the rest of the
status with it when the API server refuses it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from trainer.api.trainjob_status import ConditionType, JobStatus, NodeScale
from trainer.framework.plugin_api.component import Component, Revision, is_unique_name
from trainer.framework.plugin_api.errors import BuildError, PluginError, UnexpectedError
from trainer.framework.plugin_api.extension_points import Impediment, Outcome, StatusCondition, Watch
from trainer.framework.plugin_api.review import AdmissionWarning
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import key_of, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from contextlib import AbstractContextManager

    from trainer.api.trainjob import TrainJob
    from trainer.kube.objects import Object

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")
"""As the Kubernetes API conventions have it."""

_T = TypeVar("_T")


def contained(plugin: str, hook: str) -> _Contained:
    """Name the plugin in whatever it raises; what it says about the TrainJob itself passes.

    Args:
        plugin: name of the plugin.
        hook: what it is asked for.

    Raises:
        BuildError: the TrainJob or its runtime is wrong.
        PluginError: the plugin is.
    """
    return _Contained(plugin, hook)


@contextmanager
def build_contained() -> Iterator[None]:
    """Let only BuildErrors out of a build, so that a defect is told where the TrainJob is, and holds up no other.

    Raises:
        BuildError: the TrainJob or its runtime is wrong, or a plugin is.
        UnexpectedError: neither is.
    """
    try:
        yield
    except BuildError:
        raise
    except Exception as error:
        raise UnexpectedError(error) from error


class _Contained:
    """A context manager; as a generator it would take longer than most hooks."""

    __slots__ = ("_hook", "_plugin")

    def __init__(self, plugin: str, hook: str) -> None:
        self._plugin = plugin
        self._hook = hook

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, BuildError) and error.errors:
            return
        if isinstance(error, Exception | SystemExit):
            # SystemExit: a library that a plugin uses may end the program, and all TrainJobs with it.
            raise PluginError(self._plugin, self._hook, error) from error


def checked_watches(watches: Iterable[object]) -> list[Watch]:
    """What `watches` returns.

    Raises:
        TypeError: it is something else.
    """
    return [_instance(watch, Watch) for watch in watches]


def checked_findings(findings: Iterable[object]) -> list[FieldError | AdmissionWarning]:
    """What `validate` returns.

    Raises:
        TypeError: it is something else.
    """
    return [each if isinstance(each, AdmissionWarning) else _instance(each, FieldError) for each in findings]


def checked_components(
    components: Iterable[object], plugin: str, train_job: TrainJob, others: Collection[Component]
) -> list[Component]:
    """What `build` returns, with the name of the plugin.

    Args:
        components: the objects of the plugin.
        plugin: its name.
        train_job: whose children they become; on trial it may have no name yet.
        others: the objects that there are already; no two may be the same.

    Raises:
        TypeError, ValueError: it is something else, or cannot be a child of the TrainJob.
    """
    present = [_instance(each, Component) for each in components]
    if not present:
        return []
    builders = {(each.resource, key_of(each.object)): each.plugin for each in others}
    namespace = train_job.metadata.namespace or ""
    checked: list[Component] = []
    for component in present:
        resource, obj = component.resource, component.object
        json.dumps(obj, sort_keys=True)
        if not name_of(obj) and train_job.metadata.name:
            raise ValueError(f"a {resource.kind} has no metadata.name")
        if (obj.get("apiVersion"), obj.get("kind")) != (resource.api_version, resource.kind):
            raise ValueError(f"{name_of(obj)} must have apiVersion {resource.api_version} and kind {resource.kind}")
        if namespace_of(obj) != namespace:
            found = namespace_of(obj) or "none"
            raise ValueError(f"{resource.kind} {name_of(obj)} must be in namespace {namespace}, not {found}")
        if component.generated is not None and name_of(obj) and not is_unique_name(name_of(obj), train_job):
            raise ValueError(
                f"{resource.kind} {name_of(obj)} is generated; its name must be one that unique_name gives, "
                "for nobody can tell whose it is once it exists"
            )
        place = (resource, key_of(obj))
        if place in builders:
            raise ValueError(f"{resource.kind} {key_of(obj)} is built by plugin {builders[place]} already")
        builders[place] = plugin
        checked.append(replace(component, plugin=plugin))
    return checked


def checked_generated(generated: object, fixed: Object) -> Object:
    """What `Component.generated` returns.

    Args:
        generated: members of the object.
        fixed: the others.

    Raises:
        TypeError, ValueError: it is something else, cannot be sent, or would replace what is fixed.
    """
    members: Object = _instance(generated, dict)
    json.dumps(members)
    if twice := sorted(members.keys() & fixed.keys()):
        raise ValueError(f"generated gives {', '.join(twice)}, which the object has already")
    return members


def checked_revision(revision: object, existing: Object) -> Revision | None:
    """What `Component.revise` returns, and what it falls back to.

    Args:
        revision: what to apply.
        existing: what to apply it to.

    Raises:
        TypeError, ValueError: it is something else, cannot be sent, or is of another object.
    """
    if revision is None:
        return None
    checked = _instance(revision, Revision)
    json.dumps(checked.object)
    wanted, found = _identity(existing), _identity(checked.object)
    if found != wanted:
        raise ValueError(
            f"the revision of {wanted} must have the same apiVersion, kind, namespace and name, not {found}"
        )
    checked_revision(checked.fallback, existing)
    return checked


def checked_outcome(outcome: object) -> Outcome | None:
    """What `terminal_condition` returns.

    Raises:
        TypeError, ValueError: it is something else, or the API server would refuse it.
    """
    if outcome is None:
        return None
    checked = _instance(outcome, Outcome)
    _check_type(checked.type, ConditionType.COMPLETE, ConditionType.FAILED)
    _check_words(checked.type, checked.reason, checked.message)
    return checked


def checked_jobs_status(counts: Iterable[object] | None) -> list[JobStatus] | None:
    """What `jobs_status` returns.

    Raises:
        TypeError, ValueError: it is something else, or names a replicated Job twice.
    """
    if counts is None:
        return None
    checked = [_instance(count, JobStatus) for count in counts]
    for name, times in Counter(count.name for count in checked).items():
        if times > 1:
            raise ValueError(f"the replicated Job {name} is counted twice")
    return checked


def checked_scale(scale: object) -> NodeScale | None:
    """What `node_scale` returns.

    Raises:
        TypeError: it is something else.
    """
    return None if scale is None else _instance(scale, NodeScale)


def checked_impediments(impediments: Iterable[object], call: AbstractContextManager[None]) -> list[Impediment]:
    """What `impediments` returns, with details that do not raise.

    Args:
        impediments: what it returns.
        call: contains what the details raise when they are asked for, see `contained`.

    Raises:
        TypeError, ValueError: it is something else, or the API server would refuse it.
    """
    checked: list[Impediment] = []
    for impediment in (_instance(each, Impediment) for each in impediments):
        _check_type(impediment.type, ConditionType.PENDING, ConditionType.RESTARTING)
        _check_words(impediment.type, impediment.reason, impediment.headline)
        checked.append(replace(impediment, details=_Details(call, impediment)))
    return checked


def checked_conditions(conditions: Iterable[object], condition_types: Collection[str]) -> list[StatusCondition]:
    """What `status_conditions` returns.

    Args:
        conditions: what it returns.
        condition_types: what it may return.

    Raises:
        TypeError, ValueError: it is something else, or the API server would refuse it.
    """
    checked = [_instance(condition, StatusCondition) for condition in conditions]
    for condition in checked:
        if condition.type not in condition_types:
            raise ValueError(f"condition {condition.type} is not among its condition_types")
        if not (condition.holds is None or isinstance(condition.holds, bool)):
            raise TypeError(f"condition {condition.type} must hold True, False or None, not {condition.holds!r}")
        _check_words(condition.type, condition.reason, condition.message)
    return checked


def _identity(obj: Object) -> str:
    return f"{obj.get('apiVersion')} {obj.get('kind')} {key_of(obj)}"


class _Details:
    """Asked for while the status is written, which nothing may keep from being written."""

    def __init__(self, call: AbstractContextManager[None], impediment: Impediment) -> None:
        self._call = call
        self._impediment = impediment

    def __call__(self) -> str:
        try:
            with self._call:
                return _instance(self._impediment.details(), str)
        except BuildError as error:
            return str(error)


def _instance(value: object, wanted: type[_T]) -> _T:
    if not isinstance(value, wanted):
        raise TypeError(f"gave {type(value).__name__} instead of {wanted.__name__}")
    return value


def _check_type(found: object, *possible: ConditionType) -> None:
    if found not in possible:
        raise ValueError(f"type {found!r} must be {' or '.join(possible)}")


def _check_words(subject: str, reason: object, message: object) -> None:
    if not _REASON.fullmatch(_instance(reason, str)):
        raise ValueError(f"condition {subject} has reason {reason!r}, which is not a CamelCase word")
    _instance(message, str)
