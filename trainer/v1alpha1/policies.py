"""Errors for which Kubeflow Trainer (Go) refuses a TrainJob because of the policies of its runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeAlias

from trainer.api.jobset import ReplicatedJob
from trainer.api.labels import ANCESTOR_LABEL, VOLCANO_QUEUE
from trainer.api.trainingruntime import MLPolicy, Runtime
from trainer.framework.building.extraction import subject_of
from trainer.framework.plugin_api.devices import Devices
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.framework.plugin_api.runtime_info import LAUNCHER, Ancestor
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.kube.resource import PRIORITY_CLASSES
from trainer.v1alpha1 import torchtune
from trainer.v1alpha1.profile import NODE
from trainer.v1alpha1.runtime_patches import containers_of
from trainer.v1alpha1.torchtune import Method

DevicesOf: TypeAlias = Callable[[Object, Object], Devices]
"""The devices of a container, by its resources and the spec of its pod."""

HasPriorityClass: TypeAlias = Callable[[str], Awaitable[bool]]
"""Whether the cluster has a PriorityClass of this name."""

_TRAINER: Final = "spec.trainer"
_FLUX_INSTALLER: Final = "flux-installer"
_RESERVED: Final = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "mpi": (
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
    ),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}
log = get_logger(__name__)

_SYSTEM_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})


def policy_errors(spec: Object, runtime: Runtime, devices_of: DevicesOf) -> Iterator[FieldError]:
    """The errors of a TrainJob that does not fit the policies of the runtime.

    Args:
        spec: of a TrainJob, which may be wrong in any way.
        runtime: what it builds on.
        devices_of: counts devices.
    """
    jobs, trainer = _jobs(runtime), mapping_at(spec, "trainer")
    policy, groups = runtime.spec.ml_policy, runtime.spec.pod_group_policy
    if policy is not None:
        yield from _reserved_errors(trainer, policy.source)
        yield from _torch_errors(spec, policy, jobs, devices_of)
        yield from _mpi_errors(trainer, policy, jobs)
        if policy.flux is not None:
            yield from _flux_errors(trainer, jobs.get(NODE))
    if groups is not None and groups.volcano is not None and _queue(spec, runtime) == "":
        yield invalid(f"spec.annotations[{VOLCANO_QUEUE}]", "", "Volcano queue name must not be empty")


async def priority_errors(runtime: Runtime, exists: HasPriorityClass) -> list[FieldError]:
    """PriorityClasses of a gang of Volcano that the cluster lacks; behind one of the system's none is looked at."""
    groups, errors = runtime.spec.pod_group_policy, []
    for job in _jobs(runtime).values() if groups is not None and groups.volcano is not None else ():
        name = _pod_spec(job).get("priorityClassName")
        if name in _SYSTEM_CLASSES:
            break
        if name and not await exists(str(name)):
            rule = f'PriorityClass "{name}" doesn\'t exist: create it, or let the runtime name another one'
            errors.append(invalid("spec.templateSpec.priorityClassName", name, rule))
    return errors


def ignored(spec: Object, runtime: Runtime) -> Iterator[AdmissionWarning]:
    """Settings of a TrainJob that have no effect on this runtime, or not on its nodes.

    They have none in Kubeflow Trainer (Go), whose pods Kueue counts.
    """
    trainer, policy = mapping_at(spec, "trainer"), runtime.spec.ml_policy
    if trainer and not any(_ancestor(job) == Ancestor.TRAINER for job in _jobs(runtime).values()):
        rule = f"no replicated Job of {subject_of(runtime)} has the label {ANCESTOR_LABEL}: {Ancestor.TRAINER}"
        yield AdmissionWarning(_TRAINER, f"has no effect: {rule}")
    elif trainer.get("resourcesPerNode") is None:
        return
    elif policy is None:
        path = f"{_TRAINER}.resourcesPerNode"
        yield AdmissionWarning(path, f"has no effect: {subject_of(runtime)} has no spec.mlPolicy")
    elif policy.mpi is not None and not policy.mpi.run_launcher_as_node:
        where = f"give resources of the nodes in {subject_of(runtime)}"
        rule = f"is for the launcher alone, since runLauncherAsNode is false; {where}"
        yield AdmissionWarning(f"{_TRAINER}.resourcesPerNode", rule)


def priority_classes_of(client: Client) -> HasPriorityClass:
    """Looks for PriorityClasses; all of them are taken to exist where the manager may not get them."""

    async def exists(name: str) -> bool:
        try:
            await client.get(PRIORITY_CLASSES, name)
        except NotFoundError:
            return False
        except ForbiddenError as error:
            log.warning("may not look for priority classes", error=str(error))
        return True

    return exists


def _reserved_errors(trainer: Object, source: str | None) -> Iterator[FieldError]:
    names = [str(each.get("name")) for each in objects_in(trainer.get("env"))]
    reserved = _RESERVED.get(source or "", ())
    if source == "xgboost":
        for index, name in enumerate(names):
            if name in reserved:
                yield forbidden(f"{_TRAINER}.env[{index}]", f"{name} is reserved for the XGBoost runtime")
    elif found := sorted(set(names) & set(reserved)):
        rule = f"must not have reserved envs, invalid envs configured: [{' '.join(found)}]"
        yield invalid(f"{_TRAINER}.env", trainer.get("env"), rule)


def _torch_errors(
    spec: Object, policy: MLPolicy, jobs: dict[str, ReplicatedJob], devices_of: DevicesOf
) -> Iterator[FieldError]:
    if policy.torch is None:
        return
    for target in policy.torch.env_injection.targets if policy.torch.env_injection else ():
        job = jobs.get(target.job_name)
        for name in target.container_names:
            if job is None or name not in containers_of(job):
                where = f'podSet "{target.job_name}" container "{name}"'
                rule = f"envInjection target {where} not found in runtime template"
                yield invalid("spec.runtimeRef", spec.get("runtimeRef"), rule)
    if mapping_at(spec, "trainer").get("command") == torchtune.COMMAND:
        yield from _torchtune_errors(spec, jobs, devices_of)


def _torchtune_errors(spec: Object, jobs: dict[str, ReplicatedJob], devices_of: DevicesOf) -> Iterator[FieldError]:
    trainer, runtime = mapping_at(spec, "trainer"), str(mapping_at(spec, "runtimeRef").get("name"))
    args = [str(arg) for arg in trainer.get("args") or []]
    model, method, nodes = torchtune.model_of(runtime), torchtune.method_of(args), trainer.get("numNodes") or 1
    name, size = "spec.runtimeRef.name", f"{_TRAINER}.numNodes"
    if model not in torchtune.MODELS:
        yield invalid(name, runtime, f"must have a supported pretrained model, invalid model configured: {model}")
    if nodes > 1 and model != torchtune.MULTI_NODE_MODEL:
        yield invalid(size, nodes, f"must be 1 for {model} model")
    if method is Method.QLORA and model == torchtune.NO_QLORA_MODEL:
        yield invalid(name, runtime, f"names {model}, which torchtune cannot fine-tune with QLoRA")
    resources, pod = _resources(trainer, jobs)
    is_one_device = trainer.get("numProcPerNode") == 1 or _count(resources, pod, devices_of) == 1
    if method is Method.QLORA and model in torchtune.SMALL_MODELS and not is_one_device:
        reason = f"torchtune runs QLoRA of {model} on a single device"
        processes = trainer.get("numProcPerNode", "auto")
        yield invalid(f"{_TRAINER}.numProcPerNode", processes, f"must be 1, or unset with one GPU: {reason}")
        rule = f"must have one GPU, unless numProcPerNode is 1: {reason}"
        yield invalid(f"{_TRAINER}.resourcesPerNode", resources, rule)
    if nodes > 1 and method is not Method.FULL:
        yield invalid(size, nodes, "must be 1 with LoRA: on several nodes torchtune trains all weights")
    for index, arg in enumerate(args):
        key = torchtune.key_of(arg)
        if key in torchtune.MANAGED_KEYS:
            rule = f'must not set immutable config "{key}" in trainer args; it is managed by the runtime'
            yield invalid(f"{_TRAINER}.args[{index}]", arg, rule)


def _resources(trainer: Object, jobs: dict[str, ReplicatedJob]) -> tuple[Object, Object]:
    """The resources of a node, those of the runtime merged with those of the TrainJob, and the spec of its pod."""
    nodes = [job for job in jobs.values() if job.name == NODE or _ancestor(job) == Ancestor.TRAINER]
    node = next((job for job in nodes if NODE in containers_of(job)), None)
    own = mapping_at(containers_of(node)[NODE], "resources") if node else {}
    stated = mapping_at(trainer, "resourcesPerNode")
    amounts = {kind: mapping_at(own, kind) | mapping_at(stated, kind) for kind in ("limits", "requests")}
    claims = stated.get("claims") or own.get("claims")
    return amounts | ({"claims": claims} if claims else {}), _pod_spec(node) if node else {}


def _count(resources: Object, pod: Object, devices_of: DevicesOf) -> int:
    try:
        return devices_of(resources, pod).count
    except ValueError:  # an amount that cannot be read
        return 0


def _mpi_errors(trainer: Object, policy: MLPolicy, jobs: dict[str, ReplicatedJob]) -> Iterator[FieldError]:
    nodes = trainer.get("numNodes") or 1
    launcher_is_node = policy.mpi is not None and policy.mpi.run_launcher_as_node
    if launcher_is_node and nodes > 1 and not {LAUNCHER, NODE} <= jobs.keys():
        condition = "MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher and node"
        rule = f"must have 1 when {condition}"
        yield invalid(f"{_TRAINER}.numNodes", nodes, rule)


def _flux_errors(trainer: Object, node: ReplicatedJob | None) -> Iterator[FieldError]:
    processes = trainer.get("numProcPerNode")
    if isinstance(processes, int) and processes < 1:
        rule = "must be greater than or equal to 1 for Flux TrainJob"
        yield invalid(f"{_TRAINER}.numProcPerNode", processes, rule)
    if node is not None and _FLUX_INSTALLER in containers_of(node):
        rule = f"InitContainer '{_FLUX_INSTALLER}' is reserved"
        yield invalid(f"{_TRAINER}.initContainers", _FLUX_INSTALLER, rule)


def _queue(spec: Object, runtime: Runtime) -> str | None:
    """The queue of Volcano that the runtime names, or the last patch that names one."""
    metadata = runtime.spec.template.metadata
    queue = ((metadata and metadata.annotations) or {}).get(VOLCANO_QUEUE)
    for patch in objects_in(spec.get("runtimePatches")):
        changes = mapping_at(patch, "trainingRuntimeSpec", "template", "metadata")
        queue = mapping_at(changes, "annotations").get(VOLCANO_QUEUE, queue)
    return queue


def _jobs(runtime: Runtime) -> dict[str, ReplicatedJob]:
    return {job.name: job for job in runtime.spec.template.spec.replicated_jobs or []}


def _pod_spec(job: ReplicatedJob) -> Object:
    return mapping_at(job.template.spec.template, "spec")


def _ancestor(job: ReplicatedJob) -> str | None:
    metadata = job.template.metadata
    return ((metadata and metadata.labels) or {}).get(ANCESTOR_LABEL)
