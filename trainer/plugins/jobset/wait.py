"""Reasons for which pods of a JobSet do not run, with the fields of TrainJob or runtime that request what is missing.

Kubelet, scheduler and admission say what is missing, but not who asks for it. The manager reads neither those objects
nor nodes: it may read no more than a TrainJob needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from trainer.api.checkpoints import CHECKPOINTS, mounted_directory
from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.framework import Evidence, PodProblem
from trainer.kube.objects import Object, ObjectKey, labels_of, name_of
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from trainer.workloads.pod_requests import scarce_resources

_MISSING = re.compile(
    r'\b(secret|configmap|persistentvolumeclaim|serviceaccount|runtimeclass) "([^"]+)" not found', re.IGNORECASE
)
_MISSING_KEY = re.compile(r"couldn't find key \S+ in (secret|configmap) (?:[^/\s]+/)?(\S+)", re.IGNORECASE)
_MISSING_CLASS = re.compile(r"no (priorityclass) with name (\S+) was found", re.IGNORECASE)

_FIELDS: dict[str, frozenset[tuple[str, str]]] = {
    "secret": frozenset(
        {("secretRef", "name"), ("secretKeyRef", "name"), ("secret", "secretName"), ("secret", "name")}
    ),
    "configmap": frozenset({("configMapRef", "name"), ("configMapKeyRef", "name"), ("configMap", "name")}),
    "persistentvolumeclaim": frozenset({("persistentVolumeClaim", "claimName")}),
    "serviceaccount": frozenset({("", "serviceAccountName")}),
    "priorityclass": frozenset({("", "priorityClassName")}),
    "runtimeclass": frozenset({("", "runtimeClassName")}),
    "scheduler": frozenset({("", "schedulerName")}),
}
"""The fields that name an object, by kind, each with the member that contains it, "" for any (Kubernetes API reference,
"Pod")."""


class Named(NamedTuple):
    """An object that a field may name."""

    kind: str
    """The kind, in lower case."""
    name: str


def missing_object(message: str) -> Named | None:
    """The missing object that a message names; None without one."""
    found = _MISSING.search(message) or _MISSING_KEY.search(message) or _MISSING_CLASS.search(message)
    return Named(found[1].lower(), found[2]) if found is not None else None


def fields_naming(wanted: Named, spec: Object) -> list[str]:
    """Paths of the fields in the spec of a TrainJob or JobSet that name an object."""
    fields = _FIELDS[wanted.kind]
    return [
        path
        for path, parent, name, value in _texts(spec, "", "spec")
        if value == wanted.name and ((parent, name) in fields or ("", name) in fields)
    ]


def _texts(value: object, parent: str, path: str) -> Iterator[tuple[str, str, str, str]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, parent, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        if isinstance(member, str):
            yield f"{path}.{name}", parent, name, member
        else:
            yield from _texts(member, name, f"{path}.{name}")


_QUOTA = re.compile(r"\bexceeded quota: [^, ]+, requested: ([^ ]+)")
_SELECTOR = re.compile(r"didn't match (?:Pod's node affinity/selector|node selector)")
_TAINT = re.compile(r"had untolerated taint")

_PLACES = ("containers", "initContainers")
_KINDS = ("requests", "limits")
"""The scheduler counts requests, which default to the limits."""


def fields_asking(message: str, replicated_job: str, pods: Object, spec: Object, runtime: str) -> list[str]:
    """The fields that request what a message of the scheduler or of admission says is lacking, with their values.

    `pods` is the spec of the pods, which is at the path `runtime` of the runtime, and `spec` that of the TrainJob.
    """
    resources = _resources(message)
    if resources:
        return [field for name in resources for field in _amount(name, pods, spec, runtime)]
    overrides = list(_overrides(spec, replicated_job))
    if _SELECTOR.search(message):
        own = [f"{path}.nodeSelector: {_pairs(override['nodeSelector'])} asked for" for path, override in overrides
               if override.get("nodeSelector")]  # fmt: skip
        return own or list(_selection(pods, runtime))
    if _TAINT.search(message):
        own = [f"{path}.tolerations" for path, override in overrides if override.get("tolerations")]
        in_runtime = [f"{runtime}.tolerations"] if pods.get("tolerations") else []
        return own or in_runtime or ["spec.podSpecOverrides[].tolerations: not set"]
    return []


def _resources(message: str) -> Sequence[str]:
    found = dict.fromkeys(scarce_resources(message))
    quota = _QUOTA.search(message)
    for part in quota[1].split(",") if quota else ():
        name = part.partition("=")[0].removeprefix("requests.").removeprefix("limits.")
        found[name] = None
    return list(found)


def _amount(name: str, pods: Object, spec: Object, runtime: str) -> Iterator[str]:
    """The field that requests a resource: the TrainJob's if the pods have its amount."""
    asked = [
        (f"{runtime}.{place}[{container.get('name')}].resources.{kind}[{name}]", amount)
        for place in _PLACES
        for container in pods.get(place) or []
        for kind in _KINDS
        if (amount := ((container.get("resources") or {}).get(kind) or {}).get(name)) is not None
    ]
    own = (spec.get("trainer") or {}).get("resourcesPerNode") or {}
    for kind in _KINDS:
        amount = (own.get(kind) or {}).get(name)
        if amount is not None and any(_equal(amount, other) for _, other in asked):
            yield f"spec.trainer.resourcesPerNode.{kind}[{name}]: {amount} requested"
            return
    if asked:
        path, amount = asked[0]
        yield f"{path}: {amount} requested"


def _equal(one: object, other: object) -> bool:
    try:
        return parse_quantity(one) == parse_quantity(other)
    except ValueError:
        return False


def _overrides(spec: Object, replicated_job: str) -> Iterator[tuple[str, Object]]:
    for index, override in enumerate(spec.get("podSpecOverrides") or []):
        if replicated_job in {target.get("name", "").lower() for target in override.get("targetJobs") or []}:
            yield f"spec.podSpecOverrides[{index}]", override


def _selection(pods: Object, runtime: str) -> Iterator[str]:
    if pods.get("nodeSelector"):
        yield f"{runtime}.nodeSelector: {_pairs(pods['nodeSelector'])} asked for"
    if (pods.get("affinity") or {}).get("nodeAffinity"):
        yield f"{runtime}.affinity.nodeAffinity"


def _pairs(labels: Object) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())


_FIELDS_LIMIT = 3
"""Most fields that a message names."""

_WORDS = {PODS.kind: "pod", PERSISTENT_VOLUME_CLAIMS.kind: "claim"}
"""Kinds that messages do not call by their name."""


@dataclass(frozen=True, slots=True)
class Example:
    """An object that is affected."""

    kind: str
    name: str
    is_one_of_many: bool = False
    """Whether others are affected as well. Defaults to no."""

    def __str__(self) -> str:
        return f"{'for example ' if self.is_one_of_many else ''}{_WORDS.get(self.kind, self.kind)} {self.name}"


@dataclass(frozen=True, slots=True)
class WaitReason:
    """A reason, with an example of the pods that it affects."""

    reason: str
    """One CamelCase word."""
    headline: str
    """Number of pods or other objects with this reason."""
    example: Example
    """The object that is the example."""
    message: str
    """The message of the component that reports it."""
    replicated_job: str = ""
    """Name of the replicated Job of the example. Defaults to unknown."""
    missing: Named | None = None
    """The missing object. Defaults to the one in the message."""
    debounce: float = 0
    """Seconds before it is reported. Defaults to none."""

    def problem(self, train_job: TrainJob, jobset: Object) -> PodProblem:
        """The text of the condition and event."""
        details, fields = partial(self._details, train_job, jobset), partial(self._fields, train_job, jobset)
        evidence = Evidence(self.example.kind, self.example.name, self.message, fields)
        return PodProblem(ConditionType.PENDING, self.reason, self.headline, details, self.debounce, evidence)

    def _details(self, train_job: TrainJob, jobset: Object) -> str:
        """What nodes have too little of, the fields that request it, and the message about the example."""
        short = " and ".join(scarce_resources(self.message))
        place = ", ".join(self._fields(train_job, jobset)[:_FIELDS_LIMIT])
        parts = (f"too little {short}" if short else "", place, str(self.example), self.message)
        return ": ".join(part for part in parts if part)

    def _fields(self, train_job: TrainJob, jobset: Object) -> list[str]:
        spec = train_job.spec.to_object()
        template = f"{train_job.spec.runtime_ref.kind}/{train_job.spec.runtime_ref.name} spec.template."
        missing = self.missing or missing_object(self.message)
        if missing is not None:
            own = fields_naming(missing, spec) or list(_checkpoints(missing, train_job, jobset, template))
            return own or [f"{template}{field}" for field in fields_naming(missing, jobset.get("spec") or {})]
        for name, pods in pod_specs(jobset):
            if name == self.replicated_job:
                runtime = f"{template}spec.replicatedJobs[{name}].template.spec.template.spec"
                return fields_asking(self.message, name, pods, spec, runtime)
        return []


def _checkpoints(missing: Named, train_job: TrainJob, jobset: Object, template: str) -> Iterator[str]:
    """The annotation that names a claim, whose volume is in no field of TrainJob or runtime."""
    directory = mounted_directory(jobset)
    if directory is not None and missing == Named("persistentvolumeclaim", directory.name):
        is_own = CHECKPOINTS in (train_job.metadata.annotations or {})
        yield f"{'' if is_own else template}metadata.annotations[{CHECKPOINTS}]"


def cannot_start(
    reason: str, pods: AbstractSet[ObjectKey], example: Object, message: str, *, missing: Named | None = None,
    debounce: float = 0,
) -> WaitReason:  # fmt: skip
    """Pods that exist and do not start, with one of them as the example; see `WaitReason`."""
    shown = Example(PODS.kind, name_of(example), is_one_of_many=len(pods) > 1)
    job = labels_of(example).get(REPLICATED_JOB, "")
    return WaitReason(reason, f"{about(len(pods))} cannot start", shown, message, job, missing, debounce)


def pod_specs(jobset: Mapping[str, Any]) -> Iterator[tuple[str, Object]]:
    """The name of each replicated Job with the spec of its pods."""
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        template = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
        yield job.get("name") or "", template.get("spec") or {}


def about(count: int) -> str:
    """A number of pods rounded down to a power of two, so that the message seldom changes."""
    return "1 pod" if count == 1 else f"at least {1 << (count.bit_length() - 1)} pods"
