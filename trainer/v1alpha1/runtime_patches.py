"""Runtime patches of v1alpha1: when they were changed, when they may change, and what they may name.

Users write them, and queueing systems do, such as Kueue, which starts and stops a TrainJob by an entry of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from trainer.api.jobset import ReplicatedJob
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import Object, mapping_at, objects_in

_PATCHES: Final = "spec.runtimePatches"
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_LONGEST_HOST: Final = 253
_ENV_ELSEWHERE: Final = frozenset({"node", "dataset-initializer", "model-initializer"})
"""Containers whose environment is that of `trainer` and `initializer`."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})


def with_times(obj: Object, old: Object | None, now: str) -> Object:
    """A TrainJob whose runtime patches say when they were last changed.

    A time that the author gives to a new patch is kept; an unchanged patch keeps its stored time.

    Args:
        obj: the TrainJob as it was sent; it may be invalid in any way.
        old: what it replaces.
        now: the present time.
    """
    spec = mapping_at(obj, "spec")
    former = {str(patch.get("manager")): patch for patch in objects_in(mapping_at(old, "spec").get("runtimePatches"))}
    patches = spec.get("runtimePatches")
    if not isinstance(patches, list):
        return obj
    timed = [
        _timed(patch, former.get(str(patch.get("manager"))), now) if isinstance(patch, dict) else patch
        for patch in patches
    ]
    return obj | {"spec": spec | {"runtimePatches": timed}}


def _timed(patch: Object, former: Object | None, now: str) -> Object:
    if former is None:
        return patch if patch.get("time") else patch | {"time": now}
    is_same = _meaning(_without_time(patch)) == _meaning(_without_time(former))
    time = former.get("time") if is_same else now
    return patch | {"time": time} if time else patch


def _without_time(patch: Object) -> Object:
    return {name: value for name, value in patch.items() if name != "time"}


def _meaning(value: Any) -> Any:
    """A value without empty members, which clients in Go such as Kueue leave out when they send an object back."""
    if isinstance(value, dict):
        members = ((name, _meaning(member)) for name, member in value.items())
        return {name: member for name, member in members if not (member is False or member in _EMPTY)}
    return [_meaning(item) for item in value] if isinstance(value, list) else value


def manager_errors(obj: Object) -> Iterator[FieldError]:
    """Each manager has a name with a domain."""
    for patch in objects_in(mapping_at(obj, "spec").get("runtimePatches")):
        manager = str(patch.get("manager", ""))
        host, _, path = manager.partition("/")
        field = f"{_PATCHES}.manager"
        if not host or not path:
            yield invalid(field, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        elif len(host) > _LONGEST_HOST or not _HOST.fullmatch(host):
            yield invalid(field, manager, "the part before / must be a DNS name in lower case, such as acme.io")
        elif not _PATH.fullmatch(path):
            yield invalid(field, manager, f"Invalid path (regex used for validation is '{_PATH.pattern}')")


def change_errors(obj: Object, old: Object | None) -> Iterator[FieldError]:
    """Runtime patches change only before pods run, or after."""
    if old is None:
        return
    before, after = mapping_at(old, "spec"), mapping_at(obj, "spec")
    if _meaning(before.get("runtimePatches") or []) == _meaning(after.get("runtimePatches") or []):
        return
    if not (before.get("suspend") or after.get("suspend")):
        rule = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
        yield forbidden(_PATCHES, rule)
        return
    for job in objects_in(mapping_at(old, "status").get("jobsStatus")):
        if job.get("active"):
            rule = (
                f"RuntimePatches cannot be modified when the JobSet's ReplicatedJob {job.get('name')} is still active"
            )
            yield forbidden(_PATCHES, rule)


def name_errors(spec: Object, jobs: dict[str, ReplicatedJob]) -> Iterator[FieldError]:
    """The names that runtime patches use, which Kubeflow Trainer (Go) means to check."""
    for patch in objects_in(spec.get("runtimePatches")):
        template = mapping_at(patch, "trainingRuntimeSpec", "template", "spec")
        for patched in objects_in(template.get("replicatedJobs")):
            name = str(patched.get("name"))
            job = jobs.get(name)
            if job is None:
                rule = "must not have replicated job that doesn't exist in the runtime job template"
                yield invalid(_PATCHES, name, rule)
                continue
            pod_spec, known = mapping_at(patched, "template", "spec", "template", "spec"), containers_of(job)
            for kind, word in (("initContainers", "initContainer"), ("containers", "container")):
                for container in objects_in(pod_spec.get(kind)):
                    if container.get("name") not in known:
                        rule = f"must not have {word} that doesn't exist in the runtime job {name}"
                        yield invalid(_PATCHES, container.get("name"), rule)
                    if kind == "containers" and container.get("env") and container.get("name") in _ENV_ELSEWHERE:
                        rule = "must not have envs for the dataset-initializer, model-initializer, node containers"
                        yield invalid(_PATCHES, container.get("name"), rule)


def containers_of(job: ReplicatedJob) -> dict[str, Object]:
    """The containers and init containers of a Job by name."""
    pod_spec = mapping_at(job.template.spec.template, "spec")
    found = [*objects_in(pod_spec.get("initContainers")), *objects_in(pod_spec.get("containers"))]
    return {str(container.get("name")): container for container in found}
