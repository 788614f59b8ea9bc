"""Encodes training runtimes of v2alpha1 for v1alpha1, see `encode`."""

from __future__ import annotations

import copy
import itertools
import shlex
from typing import Any, Final

from trainer.api.kueue import split_metadata
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.losses import Losses
from trainer.kube.objects import Object, mapping_at, objects_in

NODE: Final = "node"
"""Name of the container that trains, and of the nodes of an MPI training."""
_LAUNCHER: Final = "launcher"
_INITIALIZERS: Final = ("dataset-initializer", "model-initializer")
_EXPORTER: Final = "model-exporter"
_JOBS: Final = "spec.template.spec.replicatedJobs"
_POLICY: Final = "spec.mlPolicy"
_UNKNOWN_SOURCES: Final = {
    "tensorflow": "nothing sets TF_CONFIG",
    "paddle": "nothing sets the variables of paddle.distributed.launch",
}
"""Members of `mlPolicy` that v1alpha1 lacks, and what is lost with them."""


def encode_runtime(spec: Object, losses: Losses) -> Object:
    """The spec of a runtime of v1alpha1.

    Args:
        spec: of a runtime of v2alpha1, which may be wrong in any way; it is not changed.
        losses: what has no counterpart is added to it.
    """
    encoded = copy.deepcopy(spec)
    _unqueue(encoded, losses)
    template = mapping_at(encoded, "template", "spec")
    jobs = objects_in(template.get("replicatedJobs"))
    for job in jobs:
        _literal(job)
    policy = mapping_at(encoded, "mlPolicy")
    trainer = _trainer(jobs, is_mpi="mpi" in policy)
    encoded["mlPolicy"] = _ml_policy(policy, trainer, losses)
    _lower_names(template)
    for job in jobs:
        _mark_initializer(job, losses)
    is_in_order = mapping_at(template, "startupPolicy").get("startupPolicyOrder") == "InOrder"
    if "mpi" in policy:
        _complete_mpi(template, trainer, losses)
    elif trainer is not None:
        _mark(trainer, "trainer")
        _rename_main(trainer, losses)
    if is_in_order:
        _put_in_order(template, trainer)
    for index, rule in enumerate(objects_in(mapping_at(template, "failurePolicy").get("rules"))):
        rule.setdefault("name", f"rule-{index + 1}")
    return encoded


def _unqueue(spec: Object, losses: Losses) -> None:
    """Leave out what Kueue would read of JobSets, of which it would count each beside its TrainJob."""
    if isinstance(template := spec.get("template"), dict) and isinstance(template.get("metadata"), dict):
        template["metadata"], of_kueue = split_metadata(template["metadata"])
        for name in of_kueue:
            losses.add(f"spec.template.metadata.{name}", "lose those of Kueue: write them on each TrainJob")
        if not template["metadata"]:
            del template["metadata"]


def _pod_spec(job: Object) -> Object:
    return mapping_at(job, "template", "spec", "template", "spec")


def _literal(job: Object) -> None:
    """Write commands as lists of words and variables as texts."""
    pod_spec = _pod_spec(job)
    for container in (*objects_in(pod_spec.get("containers")), *objects_in(pod_spec.get("initContainers"))):
        match container.get("command"):
            case [str(line)]:
                container["command"] = split(line)
        for variable in objects_in(container.get("env")):
            if isinstance(variable.get("value"), int):
                variable["value"] = str(variable["value"])


def split(line: str) -> list[str]:
    """The words of a command that is one line; one that no shell could read is left as it is."""
    try:
        return shlex.split(line) or [line]
    except ValueError:
        return [line]


def _step(job: Object) -> Any:
    labels = (mapping_at(job, "template", "metadata", "labels"), _pod_labels(job))
    return next((found[ANCESTOR_LABEL] for found in labels if ANCESTOR_LABEL in found), None)


def _pod_labels(job: Object) -> Object:
    return mapping_at(job, "template", "spec", "template", "metadata", "labels")


def _trainer(jobs: list[Object], *, is_mpi: bool) -> Object | None:
    """The Job that trains: the labelled one, else the one with a usual name; never an MPI launcher."""
    own = [job for job in jobs if not (is_mpi and str(job.get("name")).lower() == _LAUNCHER)]
    labelled = (job for job in own if _step(job) == "trainer")
    named = (job for job in own if str(job.get("name")).lower() in {NODE, "trainer-node"})
    return next(labelled, None) or next(named, None)


def _ml_policy(policy: Object, trainer: Object | None, losses: Losses) -> Object:
    encoded = {name: value for name, value in policy.items() if name not in _UNKNOWN_SOURCES}
    for name, loss in _UNKNOWN_SOURCES.items():
        if name in policy:
            losses.add(f"{_POLICY}.{name}", f"has no counterpart: {loss}")
    torch, mpi = policy.get("torch"), policy.get("mpi")
    size = mapping_at(trainer, "template", "spec").get("parallelism")
    if isinstance(torch, dict):
        encoded["torch"] = {name: value for name, value in torch.items() if name == "envInjection"}
        if torch.get("numProcPerNode", "auto") != "auto":
            losses.add(f"{_POLICY}.torch.numProcPerNode", "has no counterpart; TrainJobs have trainer.numProcPerNode")
        if "elasticPolicy" in torch:
            losses.add(f"{_POLICY}.torch.elasticPolicy", "has no counterpart: the number of nodes is fixed")
            bounds = mapping_at(torch, "elasticPolicy")
            size = bounds.get("minNodes", bounds.get("maxNodes", size))
    if isinstance(mpi, dict):
        encoded["mpi"] = _mpi(mpi, losses)
        if (policy.get("numNodes") or 1) > 1:
            rule = "is the number of launchers for Kubeflow Trainer (Go); TrainJobs have trainer.numNodes"
            losses.add(f"{_POLICY}.numNodes", rule)
    elif "numNodes" not in policy:
        encoded["numNodes"] = size if isinstance(size, int) else 1
    return encoded


def _mpi(mpi: Object, losses: Losses) -> Object:
    encoded = {{"SSHAuthMountPath": "sshAuthMountPath"}.get(name, name): value for name, value in mpi.items()}
    if mpi.get("mpiImplementation", "OpenMPI") != "OpenMPI":
        losses.add(f"{_POLICY}.mpi.mpiImplementation", f"has no counterpart for {mpi['mpiImplementation']}")
        del encoded["mpiImplementation"]
    if mpi.get("numProcPerNode") == 1:
        rule = "counts the GPUs of a node where it has several; TrainJobs have trainer.numProcPerNode"
        losses.add(f"{_POLICY}.mpi.numProcPerNode", rule)
    return encoded


def _lower_names(template: Object) -> None:
    """Write names of replicated Jobs as those of the Jobs that are made, wherever they stand."""
    for job in objects_in(template.get("replicatedJobs")):
        job["name"] = str(job.get("name", "")).lower()
        for dependency in objects_in(job.get("dependsOn")):
            dependency["name"] = str(dependency.get("name", "")).lower()
    policies = [mapping_at(template, "successPolicy"), *objects_in(mapping_at(template, "failurePolicy").get("rules"))]
    for policy in policies:
        if isinstance(policy.get("targetReplicatedJobs"), list):
            policy["targetReplicatedJobs"] = [str(name).lower() for name in policy["targetReplicatedJobs"]]


def _mark(job: Object, step: str | None) -> None:
    """Set the ancestor label on a Job template, the only place where v1alpha1 reads it."""
    template = job.setdefault("template", {})
    _pod_labels(job).pop(ANCESTOR_LABEL, None)
    if step is not None:
        template.setdefault("metadata", {}).setdefault("labels", {})[ANCESTOR_LABEL] = step
    else:
        mapping_at(template, "metadata", "labels").pop(ANCESTOR_LABEL, None)


def _mark_initializer(job: Object, losses: Losses) -> None:
    names = {container.get("name") for container in objects_in(_pod_spec(job).get("containers"))}
    step = next((name for name in _INITIALIZERS if name in names), None)
    if step is None or _step(job) not in {None, step}:
        return
    _mark(job, step)
    if job["name"] != step:
        losses.add(f"{_JOBS}[{job['name']}].name", f"must be {step} for TrainJobs with such an initializer")


def _rename_main(job: Object, losses: Losses) -> None:
    """Call the container that trains `node`."""
    containers = objects_in(_pod_spec(job).get("containers"))
    main = next((each for each in containers if each.get("name") == "trainer"), None)
    if main is None and len(containers) == 1:
        main = containers[0]
    if main is None or main.get("name") == NODE:
        return
    if any(each.get("name") == NODE for each in containers):
        rule = "cannot be called node, as v1alpha1 wants it, because another one is"
        losses.add(f"{_JOBS}[{job['name']}].template.spec.template.spec.containers[{main['name']}].name", rule)
        return
    for each in objects_in(mapping_at(job, "template", "spec", "podFailurePolicy").get("rules")):
        codes = mapping_at(each, "onExitCodes")
        if codes.get("containerName") == main["name"]:
            codes["containerName"] = NODE
    main["name"] = NODE


def _put_in_order(template: Object, trainer: Object | None) -> None:
    """Write the order as dependencies: v1alpha1 waits until pods are ready, not until initializers have completed."""
    del template["startupPolicy"]
    jobs = objects_in(template.get("replicatedJobs"))
    launcher = next((job for job in jobs if job["name"] == _LAUNCHER), None)
    for index, (before, job) in enumerate(itertools.pairwise(jobs)):
        first, is_completed = before, _step(before) in _INITIALIZERS
        if any(container.get("name") == _EXPORTER for container in objects_in(_pod_spec(job).get("containers"))):
            training = launcher or trainer
            first, is_completed = training if training in jobs[: index + 1] else before, True
        dependency = {"name": first["name"], "status": "Complete" if is_completed else "Ready"}
        job.setdefault("dependsOn", [dependency])


def _complete_mpi(template: Object, nodes: Object | None, losses: Losses) -> None:
    """Label the launcher instead of the nodes, which v1alpha1 knows by name, and write out what the plugin adds."""
    jobs = objects_in(template.get("replicatedJobs"))
    launcher = next((job for job in jobs if job.get("name") == _LAUNCHER), None)
    if nodes is None or launcher is None:
        return
    _mark(nodes, None)
    _mark(launcher, "trainer")
    for job in (nodes, launcher):
        _rename_main(job, losses)
    if nodes["name"] != NODE:
        losses.add(f"{_JOBS}[{nodes['name']}].name", "must be node: v1alpha1 knows the nodes of MPI by this name")
    dependencies = objects_in(launcher.get("dependsOn"))
    if all(dependency.get("name") != nodes["name"] for dependency in dependencies):
        launcher["dependsOn"] = [*dependencies, {"name": nodes["name"], "status": "Ready"}]
        jobs.remove(launcher)
        jobs.insert(jobs.index(nodes) + 1, launcher)
        template["replicatedJobs"] = jobs
    others = [job["name"] for job in jobs if job is not nodes]
    template.setdefault("successPolicy", {"operator": "All", "targetReplicatedJobs": others})
