"""Decodes TrainJobs and training runtimes of v1alpha1 into the shape of the model, which is that of v2alpha1.

Decoded runtimes are restored as well, for snapshots that Kubeflow Trainer (Go) can read.

Nothing is refused: what is wrong in v1alpha1 is wrong in the result as well, where its reader finds it. Members that
neither version knows are kept for the same reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from trainer.api.losses import TEMPLATE_METADATA, Losses
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER, TRAIN_JOBS
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, mapping_at

API_VERSION: Final = f"{TRAIN_JOBS.group}/v1alpha1"
KINDS: Final = frozenset({TRAIN_JOBS.kind, TRAINING_RUNTIMES.kind, CLUSTER_TRAINING_RUNTIMES.kind})

_CONTROLLER: Final = f"{TRAIN_JOBS.group}/trainjob-controller"
"""The default of `spec.managedBy`, which names the controller of the cluster."""
_GANG_SCHEDULERS: Final = ("coscheduling", "volcano", "workload")
"""Members of `podGroupPolicy`; the first that a runtime has is used."""
_MPI_NAMES: Final = {"SSHAuthMountPath": "sshAuthMountPath"}
_MPI_DEFAULTS: Final = {"numProcPerNode": 1, "mpiImplementation": ""}
"""What the model leaves out: 1 counts the GPUs of a node where it has any."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object of v1alpha1 in the shape of the model."""

    object: Object
    """The object; it shares members with the object that it was decoded from."""
    losses: tuple[FieldError, ...] = ()
    """Members without a counterpart, with their paths in v1alpha1; only members that had an effect, or seem to have
    one."""


def is_decodable(obj: Any) -> bool:
    """Whether this is a TrainJob or training runtime of v1alpha1."""
    return isinstance(obj, dict) and obj.get("apiVersion") == API_VERSION and obj.get("kind") in KINDS


def decode(obj: Object) -> Decoded:
    """An object of v1alpha1 in the shape of the model, without its status.

    Args:
        obj: a TrainJob or training runtime, which may be wrong in any way; it is not changed.
    """
    losses = Losses()
    spec = obj.get("spec")
    if isinstance(spec, dict):
        spec = _train_job_spec(spec, losses) if obj.get("kind") == TRAIN_JOBS.kind else _runtime_spec(spec, losses)
    decoded = {name: value for name, value in obj.items() if name not in {"spec", "status"}}
    decoded["apiVersion"] = TRAIN_JOBS.api_version
    return Decoded(decoded | ({} if spec is None else {"spec": spec}), tuple(losses.found))


def restored_runtime(runtime: Object) -> Object:
    """A decoded training runtime in the shape that it was decoded from, or one that `decode` makes the same of.

    Args:
        runtime: one that `decode` has made; for any other there is `trainer.v1alpha1.encode`. It is not changed.
    """
    policy = mapping_at(runtime, "spec", "mlPolicy")
    encoded = runtime | {"apiVersion": API_VERSION}
    if "mpi" not in policy:
        return encoded
    mpi = {_MPI_NAMES.get(name, name): value for name, value in policy["mpi"].items()}
    policy = policy | {"mpi": _MPI_DEFAULTS | mpi}
    return encoded | {"spec": runtime["spec"] | {"mlPolicy": policy}}


def is_larger_than_the_model(error: FieldError) -> bool:
    """Whether a decoded object has more than its model allows; the CRDs of v1alpha1 have limits of their own.

    Each runtime patch becomes an override for each of its Jobs.
    """
    return error.reason == "FieldValueTooMany"


def override_paths(obj: Object) -> Iterator[tuple[str, str]]:
    """The paths of a TrainJob in the model, each with the path in v1alpha1 that it was decoded from."""
    yield "spec.datasetConfig", "spec.initializer.dataset"
    yield "spec.modelConfig.input", "spec.initializer.model"
    index = 0
    patches = mapping_at(obj, "spec").get("runtimePatches")
    for number, patch in enumerate(patches if isinstance(patches, list) else []):
        jobs = mapping_at(patch, "trainingRuntimeSpec", "template", "spec").get("replicatedJobs")
        for position, _ in enumerate(jobs if isinstance(jobs, list) else []):
            job = f"spec.runtimePatches[{number}].trainingRuntimeSpec.template.spec.replicatedJobs[{position}]"
            yield f"spec.podSpecOverrides[{index}].targetJobs", f"{job}.name"
            yield f"spec.podSpecOverrides[{index}]", f"{job}.template.spec.template.spec"
            index += 1


def _train_job_spec(spec: Object, losses: Losses) -> Object:
    decoded = {name: value for name, value in spec.items() if name not in {"initializer", "runtimePatches"}}
    if spec.get("managedBy") == _CONTROLLER:
        decoded["managedBy"] = TRAIN_JOB_CONTROLLER
    trainer = spec.get("trainer")
    if isinstance(trainer, dict):
        decoded["trainer"] = with_literal_command(trainer)
    initializer = mapping_at(spec, "initializer")
    if "dataset" in initializer:
        decoded["datasetConfig"] = _storage(initializer["dataset"])
    if "model" in initializer:
        decoded["modelConfig"] = {"input": _storage(initializer["model"])}
    patches = spec.get("runtimePatches")
    overrides = [*_overrides(patches if isinstance(patches, list) else [], decoded, losses)]
    return decoded | ({"podSpecOverrides": overrides} if overrides else {})


def with_literal_command(container: Object) -> Object:
    """A command of one item with spaces is the name of a file in v1alpha1; the model would split it into words."""
    match container.get("command"):
        case [str(item)] if re.search(r"\s", item):
            return container | {"command": [shlex.quote(item)]}
        case _:
            return container


def _storage(settings: Any) -> Any:
    """Settings of a dataset or model; a reference to the Secret "" is none."""
    if not isinstance(settings, dict) or mapping_at(settings, "secretRef").get("name"):
        return settings
    return {name: value for name, value in settings.items() if name != "secretRef"}


def _overrides(patches: list[Any], decoded: Object, losses: Losses) -> Iterator[Object]:
    """The overrides of runtime patches, one for each replicated Job; metadata of the JobSet goes into `decoded`.

    A patch that changes nothing, such as the one that Kueue puts into each TrainJob, makes no override.
    """
    for index, patch in enumerate(patches):
        path = f"spec.runtimePatches[{index}].trainingRuntimeSpec.template"
        template = mapping_at(patch, "trainingRuntimeSpec", "template")
        if metadata := losses.metadata(mapping_at(template, "metadata"), f"{path}.metadata"):
            known = mapping_at(decoded, "jobSetMetadata")
            decoded["jobSetMetadata"] = {
                name: mapping_at(known, name) | mapping_at(metadata, name)
                for name in sorted(TEMPLATE_METADATA)
                if name in known or name in metadata
            }
        jobs = mapping_at(template, "spec").get("replicatedJobs")
        author = {name: value for name, value in mapping_at(patch).items() if name in {"manager", "time"}}
        for position, job in enumerate(jobs if isinstance(jobs, list) else []):
            yield _override(job, author, f"{path}.spec.replicatedJobs[{position}]", losses)


def _override(job: Any, author: Object, path: str, losses: Losses) -> Object:
    template = mapping_at(job, "template")
    pod_template = mapping_at(template, "spec", "template")
    pod_spec = mapping_at(pod_template, "spec")
    override: Object = {"targetJobs": [{"name": mapping_at(job).get("name", "")}]} | author | pod_spec
    if pod_spec.get("tolerations"):
        override["tolerationPolicy"] = "Replace"
    if metadata := losses.metadata(mapping_at(template, "metadata"), f"{path}.template.metadata"):
        override["jobMetadata"] = metadata
    of_pods = f"{path}.template.spec.template.metadata"
    if metadata := losses.metadata(mapping_at(pod_template, "metadata"), of_pods):
        override["metadata"] = metadata
    return override


def _runtime_spec(spec: Object, losses: Losses) -> Object:
    decoded = dict(spec)
    if isinstance(spec.get("mlPolicy"), dict):
        decoded["mlPolicy"] = _ml_policy(spec["mlPolicy"])
    groups = mapping_at(spec, "podGroupPolicy")
    schedulers = [name for name in _GANG_SCHEDULERS if name in groups]
    for name in schedulers[1:]:
        text = f"is left out: a runtime has one gang scheduler, here {schedulers[0]}"
        losses.add(f"spec.podGroupPolicy.{name}", text)
        groups = {member: value for member, value in groups.items() if member != name}
        decoded["podGroupPolicy"] = groups
    template = spec.get("template")
    if isinstance(template, dict):
        decoded["template"] = _with_metadata(template, "spec.template", losses)
        jobs = mapping_at(template, "spec").get("replicatedJobs")
        if isinstance(jobs, list):
            path = "spec.template.spec.replicatedJobs"
            decoded["template"]["spec"] = template["spec"] | {
                "replicatedJobs": [_replicated_job(job, f"{path}[{index}]", losses) for index, job in enumerate(jobs)]
            }
    return decoded


def _replicated_job(job: Any, path: str, losses: Losses) -> Any:
    if not isinstance(job, dict) or not isinstance(job.get("template"), dict):
        return job
    template = _with_metadata(job["template"], f"{path}.template", losses)
    pod_template = mapping_at(template, "spec", "template")
    pod_spec = mapping_at(pod_template, "spec")
    literal = {
        kind: [with_literal_command(each) if isinstance(each, dict) else each for each in pod_spec[kind]]
        for kind in ("containers", "initContainers")
        if isinstance(pod_spec.get(kind), list)
    }
    if literal:
        template["spec"] = template["spec"] | {"template": pod_template | {"spec": pod_spec | literal}}
    return job | {"template": template}


def _with_metadata(template: Object, path: str, losses: Losses) -> Object:
    """A copy of a template, with what its metadata may say in the model."""
    if not isinstance(template.get("metadata"), dict):
        return dict(template)
    return template | {"metadata": losses.metadata(template["metadata"], f"{path}.metadata")}


def _ml_policy(policy: Object) -> Object:
    # The default is 1, whatever the Jobs say, but for MPI, where it is the size of the launcher.
    default: Object = {} if "mpi" in policy else {"numNodes": 1}
    decoded = default | policy
    if isinstance(policy.get("numNodes"), int) and policy["numNodes"] < 1:
        decoded["numNodes"] = 1
    torch = policy.get("torch")
    if isinstance(torch, dict) and not mapping_at(torch, "envInjection").get("targets"):
        decoded["torch"] = {name: value for name, value in torch.items() if name != "envInjection"}
    mpi = policy.get("mpi")
    if isinstance(mpi, dict):
        decoded["mpi"] = {
            {"sshAuthMountPath": "SSHAuthMountPath"}.get(name, name): value
            for name, value in mpi.items()
            if (name, value) not in _MPI_DEFAULTS.items()
        }
    return decoded
