"""The page about what the fields of v1 jobs become: a sample of each field is converted with and without it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hack.reference.markdown import code, page, prose, table
from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer.webhooks.mutability import changes
from trainer_v1_jobs.api.kinds import KINDS, JobKind
from trainer_v1_jobs.conversion import Conversion, convert
from trainer_v1_jobs.conversion.encoding import encoded

_METRIC: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
RUN_POLICY: Final[Mapping[str, Any]] = {
    "cleanPodPolicy": "All",
    "ttlSecondsAfterFinished": 1,
    "activeDeadlineSeconds": 1,
    "backoffLimit": 1,
    "schedulingPolicy.minAvailable": 1,
    "schedulingPolicy.queue": "team",
    "schedulingPolicy.minResources": {"cpu": 1},
    "schedulingPolicy.priorityClass": "high",
    "schedulingPolicy.scheduleTimeoutSeconds": 1,
    "suspend": True,
    "managedBy": "kueue.x-k8s.io/multikueue",
}
"""Values of the run policy that differ from what is assumed without them."""
_ELASTIC: Final = {
    "minReplicas": 3,
    "maxReplicas": 5,
    "rdzvBackend": "etcd",
    "rdzvPort": 1,
    "rdzvHost": "host",
    "rdzvId": "id",
    "rdzvConf": [{"key": "a", "value": "b"}],
    "standalone": True,
    "nProcPerNode": 3,
    "maxRestarts": 7,
    "metrics": [_METRIC],
}
SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    "kubeflow.org/v1/PyTorchJob": {"nprocPerNode": "2"}
    | {f"elasticPolicy.{name}": each for name, each in _ELASTIC.items()},
    "kubeflow.org/v1/JAXJob": {},
    "kubeflow.org/v1/TFJob": {"successPolicy": "AllWorkers", "enableDynamicWorker": True},
    "kubeflow.org/v1/XGBoostJob": {},
    "kubeflow.org/v1/PaddleJob": {
        f"elasticPolicy.{name}": _ELASTIC[name] for name in ("minReplicas", "maxReplicas", "maxRestarts", "metrics")
    },
    "kubeflow.org/v1/MPIJob": {"slotsPerWorker": 3, "cleanPodPolicy": "All", "mainContainer": "logger"},
    "kubeflow.org/v2beta1/MPIJob": {
        "slotsPerWorker": 3,
        "runLauncherAsWorker": True,
        "sshAuthMountPath": "/keys",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "Intel",
    },
}
"""The same of the other fields of each kind, but those of roles."""
_ROLE: Final[Mapping[str, Any]] = {
    "replicas": 3,
    "restartPolicy": "ExitCode",
    "template.metadata.labels": {"team": "ml"},
    "template.metadata.annotations": {"team": "ml"},
    "template.metadata.name": "pod",
    "template.spec.restartPolicy": "Always",
    "template.spec.hostname": "host",
    "template.spec.subdomain": "domain",
    "template.spec.nodeSelector": {"disk": "ssd"},
}
"""Values of the fields of a role; nodeSelector is one for all others of its pods."""
_OTHERS: Final = "any other of `template.spec`"
_ROLES: Final = {
    "TFJob": ("PS", "Worker"),
    "MPIJob": ("Launcher", "Worker"),
    "JAXJob": ("Worker",),
    "PaddleJob": ("Worker",),
}
"""Roles of the samples of kinds that are not a Master and Workers."""
_VERSIONS: Final[tuple[Version, ...]] = ("v2alpha1", "v1alpha1")
_JOB: Final = re.compile(r"spec\.template\.spec\.replicatedJobs\[([^]]+)]\.template\.spec\.(template\.spec\.)?")
_MOST: Final = 3
"""Places that are named of those that a field changes."""


def v1_fields() -> str:
    """The page docs/reference/v1-fields.md."""
    sections = (each for name in SPECS for each in (f"## {_title(name)}", _table(name)))
    return page(
        "Fields of the v1 jobs",
        "What `trainer convert`, and a manager that serves PyTorchJobs and JAXJobs, makes of each field. **Mapped**: "
        "where the TrainJob or its runtime says it. **Lost**: the conversion, or the warning at "
        "submission, says so. Fields that are not here are refused, with the field. Found by converting a job with "
        "and without the field, so what a value changes may depend on the rest of the job: "
        "[migrate-from-v1.md](../migrate-from-v1.md).",
        "Of a served job the manager itself observes `cleanPodPolicy`, `ttlSecondsAfterFinished`, `suspend` and "
        "`managedBy`, and scales it by `elasticPolicy.metrics`. Columns are by the version of TrainJobs that the "
        "cluster serves.",
        *sections,
    )


def _title(name: str) -> str:
    version, kind = name.rsplit("/", 1)
    return f"{kind} of {version.partition('/')[2]}" if kind == "MPIJob" else kind


def _table(name: str) -> str:
    version, title = name.rsplit("/", 1)
    kind = KINDS[version, title]
    paths = [*SPECS[name].items(), *((f"runPolicy.{field}", value) for field, value in RUN_POLICY.items())]
    rows = [(code(path), *_cells(kind, path, value)) for path, value in paths]
    for field, value in _ROLE.items():
        where = _OTHERS if field.endswith("nodeSelector") else code(field)
        rows.append((where, *_cells(kind, field, value, of_roles=True)))
    return table(("field", *_VERSIONS), rows)


def _cells(kind: JobKind, path: str, value: Any, *, of_roles: bool = False) -> Iterator[str]:
    before = _sample(kind)
    if path.startswith("elasticPolicy"):
        before["spec"] |= _elastic_parts(kind, before, path)
    after = copy.deepcopy(before)
    if of_roles:
        for role in _changed_roles(after["spec"][kind.replicas_field], path):
            _set(role, path, value)
    else:
        _set(after["spec"], path, value)
    first = ""
    for version in _VERSIONS:
        said = _cell(kind, before, after, path, version)
        yield "the same" if said == first else said
        first = first or said


def _changed_roles(roles: Object, path: str) -> list[Object]:
    """The last role, which is the workers, for their number; all of them for the rest."""
    found = [*roles.values()]
    return found[-1:] if path == "replicas" else found


def _set(place: Object, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for step in parents:
        place = place.setdefault(step, {})
    place[last] = value


def _cell(kind: JobKind, before: Object, after: Object, path: str, version: Version) -> str:
    was = _converted(before, kind, version)
    try:
        now = _converted(after, kind, version)
    except InvalidObjectError as error:
        return f"**Refused**: {prose(str(error.errors[0].message))}"
    found = [*_places(was, now)]
    lost = [each.message for each in now.findings if each not in was.findings]
    if not found and not lost:
        # What it belongs to is named as a whole.
        lost = [each.message for each in now.findings if f"spec.{path}".startswith(f"{each.field}.")]
    parts = [f"**Mapped**: {'; '.join(found[:_MOST])}{' and others' if len(found) > _MOST else ''}"] if found else []
    parts += [f"**Lost**: {prose('; '.join(dict.fromkeys(lost)))}"] if lost else []
    if not parts:
        raise ValueError(f"{kind.resource.kind} {path} is ignored")
    return ". ".join(parts)


def _converted(job: Object, kind: JobKind, version: Version) -> Conversion:
    return encoded(convert(job, kind, version=version), version)


def _places(was: Conversion, now: Conversion) -> Iterator[str]:
    """Where TrainJob and runtime differ."""
    for path in changes(was.train_job["spec"], now.train_job["spec"], "spec"):
        yield f"TrainJob {code(path)}"
    assert was.runtime is not None
    assert now.runtime is not None
    for path in changes(was.runtime["spec"], now.runtime["spec"], "spec"):
        if (match := _JOB.match(path)) is None:
            yield f"runtime {code(path)}"
        else:
            of = f"pods of {match[1]}" if match[2] else f"Job {match[1]}"
            yield f"runtime, {of}: {code(path[match.end() :])}"


def _elastic_parts(kind: JobKind, job: Object, path: str) -> Object:
    """Members of the spec of an elastic job: workers within bounds, and a host where a field needs one."""
    worker = job["spec"][kind.replicas_field]["Worker"] | {"replicas": 4}
    bounds = {"minReplicas": 1, "maxReplicas": 4} if kind.resource.kind == "PyTorchJob" else {}
    host = {"rdzvHost": "store"} if path.endswith("rdzvBackend") else {}
    return {kind.replicas_field: {"Worker": worker}, "elasticPolicy": bounds | host}


def _sample(kind: JobKind) -> Object:
    """A job of a kind that says no more than it must."""
    roles = _ROLES.get(kind.resource.kind, ("Master", "Worker"))
    containers = [{"name": kind.container or "mpi", "image": "image", "command": ["train"]}]
    if kind.resource.kind == "MPIJob" and kind.resource.version == "v1":
        containers.append({"name": "logger", "image": "image"})
    template = {"spec": {"containers": containers}}
    specs = {role: {"replicas": 2 if role == "Worker" else 1, "template": template} for role in roles}
    metadata = {"name": "job", "namespace": "default"}
    return copy.deepcopy(
        {
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            "metadata": metadata,
            "spec": {kind.replicas_field: specs},
        }
    )
