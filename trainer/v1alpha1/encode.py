"""Encodes TrainJobs and training runtimes of v2alpha1 for v1alpha1: those that users move, and those of v1 jobs.

What v1alpha1 leaves to its author is written out: labels of steps, the container `node`, the order of MPI Jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from trainer.api.kueue import queued_as_train_job
from trainer.api.losses import Losses
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER, TRAIN_JOBS
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.v1alpha1.decode import API_VERSION, KINDS
from trainer.v1alpha1.encode_runtime import NODE, encode_runtime, split

_GROUP: Final = TRAIN_JOBS.group
_CONTROLLER: Final = f"{_GROUP}/trainjob-controller"
_MANAGER: Final = f"{_GROUP}/convert"
"""The manager of patches that name none."""
_OTHER_FIELDS: Final = {"env", "volumeMounts", "securityContext", "name"}
"""The other fields of a container that a patch may set."""
_ENV_ELSEWHERE: Final = {
    NODE: "spec.trainer.env",
    "dataset-initializer": "spec.initializer.dataset.env",
    "model-initializer": "spec.initializer.model.env",
}
"""Containers whose environment no patch may change, and where it is written instead."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """An object of v2alpha1 in the shape of v1alpha1."""

    object: Object
    """The object; it shares members with the object that it was encoded from."""
    losses: tuple[FieldError, ...] = ()
    """Members without a counterpart, with their paths in v2alpha1."""


def is_encodable(obj: Any) -> bool:
    """Whether this is a TrainJob or training runtime of v2alpha1."""
    return isinstance(obj, dict) and obj.get("apiVersion") == TRAIN_JOBS.api_version and obj.get("kind") in KINDS


def encode(obj: Object) -> Encoded:
    """An object of v2alpha1 in the shape of v1alpha1, without its status.

    Args:
        obj: a TrainJob or training runtime, which may be wrong in any way; it is not changed.
    """
    losses = Losses()
    if obj.get("kind") == TRAIN_JOBS.kind:
        obj = queued_as_train_job(obj)
    spec = obj.get("spec")
    if isinstance(spec, dict):
        spec = _train_job_spec(spec, losses) if obj.get("kind") == TRAIN_JOBS.kind else encode_runtime(spec, losses)
    encoded = {name: value for name, value in obj.items() if name not in {"spec", "status"}}
    encoded["apiVersion"] = API_VERSION
    return Encoded(encoded | ({} if spec is None else {"spec": spec}), tuple(losses.found))


def _train_job_spec(spec: Object, losses: Losses) -> Object:
    left_out = {"datasetConfig", "modelConfig", "labels", "annotations", "jobSetMetadata", "podSpecOverrides"}
    own = {"ttlSecondsAfterFinished", "maxRestarts"}
    encoded = {name: value for name, value in spec.items() if name not in left_out | own}
    if "maxRestarts" in spec:
        losses.add("spec.maxRestarts", "has no counterpart: name a runtime with failurePolicy.maxRestarts")
    if "ttlSecondsAfterFinished" in spec:
        losses.add("spec.ttlSecondsAfterFinished", "has no counterpart: the TrainJob stays when it has finished")
    if spec.get("managedBy") in ("", TRAIN_JOB_CONTROLLER):
        encoded["managedBy"] = _CONTROLLER
    if isinstance(spec.get("trainer"), dict):
        encoded["trainer"] = _trainer(spec["trainer"], losses)
    initializer = {}
    if "datasetConfig" in spec:
        initializer["dataset"] = spec["datasetConfig"]
    if "input" in mapping_at(spec, "modelConfig"):
        initializer["model"] = mapping_at(spec, "modelConfig")["input"]
    if "output" in mapping_at(spec, "modelConfig"):
        losses.add("spec.modelConfig.output", "has no counterpart: nothing exports the model")
    encoded |= {"initializer": initializer} if initializer else {}
    patches = _patches(spec, losses)
    return encoded | ({"runtimePatches": patches} if patches else {})


def _trainer(trainer: Object, losses: Losses) -> Object:
    encoded = dict(trainer)
    match trainer.get("command"):
        case [str(line)]:
            encoded["command"] = split(line)
    processes = trainer.get("numProcPerNode")
    if isinstance(processes, str):
        del encoded["numProcPerNode"]
        if processes.isdigit():
            encoded["numProcPerNode"] = int(processes)
        elif processes != "auto":
            losses.add("spec.trainer.numProcPerNode", f"has no counterpart for {processes}; write a number")
    return encoded


@dataclass(slots=True)
class _Patch:
    """A runtime patch that is being made."""

    manager: str
    author: Object
    metadata: Object = field(default_factory=dict)
    jobs: dict[str, Object] = field(default_factory=dict)
    """The changes by replicated Job."""

    def to_object(self) -> Object:
        jobs = [{"name": name, "template": template} for name, template in self.jobs.items()]
        template = ({"metadata": self.metadata} if self.metadata else {}) | (
            {"spec": {"replicatedJobs": jobs}} if jobs else {}
        )
        time = {name: value for name, value in self.author.items() if name == "time"}
        return {"manager": self.manager, **time, "trainingRuntimeSpec": {"template": template}}


def _patches(spec: Object, losses: Losses) -> list[Object]:
    """Patches of each override, the first of the metadata, too; those of one author share one for several Jobs."""
    patches: list[_Patch] = []
    for index, override in enumerate(objects_in(spec.get("podSpecOverrides"))):
        change = _job_template(override, f"spec.podSpecOverrides[{index}]", losses)
        names = [str(target.get("name", "")).lower() for target in objects_in(override.get("targetJobs"))]
        author: Object = {name: value for name, value in override.items() if name in {"manager", "time"}}
        if not patches or patches[-1].author != author or patches[-1].jobs.keys() & set(names):
            patches.append(_Patch(_manager(author, [patch.manager for patch in patches]), author))
        patches[-1].jobs |= dict.fromkeys(names, change)
    if metadata := _job_set_metadata(spec, losses):
        patches = patches or [_Patch(_MANAGER, {})]
        patches[0].metadata = metadata
    return [patch.to_object() for patch in patches]


def _manager(author: Object, taken: list[str]) -> str:
    """The manager of a patch: a name with a domain, unique among the patches."""
    name = str(author.get("manager") or _MANAGER)
    name = name if "/" in name else f"{_GROUP}/{name}"
    number = next(number for number in range(1, len(taken) + 2) if _numbered(name, number) not in taken)
    return _numbered(name, number)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _job_set_metadata(spec: Object, losses: Losses) -> Object:
    """Labels and annotations of the JobSet, which those of Jobs and pods join: a patch needs the names of Jobs."""
    own = mapping_at(spec, "jobSetMetadata")
    result: Object = {}
    for name in ("labels", "annotations"):
        if spec.get(name):
            losses.add(f"spec.{name}", "reach the JobSet alone; patch the Jobs and pods of the runtime by name")
        values = mapping_at(own, name) | mapping_at(spec, name)
        result |= {name: values} if values else {}
    return result


def _job_template(override: Object, path: str, losses: Losses) -> Object:
    others = {"targetJobs", "manager", "time", "metadata", "jobMetadata", "tolerationPolicy"}
    pod_spec = {name: value for name, value in override.items() if name not in others}
    for kind in ("containers", "initContainers"):
        if kind in pod_spec:
            changes = enumerate(objects_in(pod_spec[kind]))
            pod_spec[kind] = [_container(each, f"{path}.{kind}[{index}]", losses) for index, each in changes]
    if "tolerations" in pod_spec and override.get("tolerationPolicy") != "Replace":
        losses.add(f"{path}.tolerations", "take the place of those of the runtime, and are not merged into them")
    pods = {"metadata": override["metadata"]} if "metadata" in override else {}
    pods |= {"spec": pod_spec} if pod_spec else {}
    template = {"metadata": override["jobMetadata"]} if "jobMetadata" in override else {}
    return template | ({"spec": {"template": pods}} if pods else {})


def _container(change: Object, path: str, losses: Losses) -> Object:
    name = NODE if change.get("name") == "trainer" else change.get("name")
    encoded = {key: value for key, value in change.items() if key in _OTHER_FIELDS} | {"name": name}
    for key in sorted(change.keys() - _OTHER_FIELDS):
        losses.add(f"{path}.{key}", "has no counterpart; change the runtime")
    if "env" in encoded and name in _ENV_ELSEWHERE and ".containers[" in path:
        del encoded["env"]
        losses.add(f"{path}.env", f"has no counterpart; write the variables into {_ENV_ELSEWHERE[str(name)]}")
    mounts: dict[str, Object] = {}
    for index, mount in enumerate(objects_in(encoded.get("volumeMounts"))):
        if mounts.setdefault(str(mount.get("name")), mount) is not mount:
            losses.add(f"{path}.volumeMounts[{index}]", "has no counterpart: a container mounts a volume once")
    return encoded | ({"volumeMounts": [*mounts.values()]} if mounts else {})
