"""Checks of an MPI runtime and its TrainJobs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainer.framework import LAUNCHER, AdmissionWarning, PodSet, RuntimeInfo, pod_spec_of
from trainer.kube.field_errors import FieldError, invalid
from trainer.plugins.mpi import hostfile, ssh_keys


def check_launcher(info: RuntimeInfo) -> Iterator[FieldError]:
    """Errors of a launcher that is missing or has several pods; without nodes it raises a BuildError."""
    jobs = f"{info.runtime} spec.template.spec.replicatedJobs"
    launcher, _ = info.launcher, info.trainer
    if launcher is None:
        names = [pod_set.name for pod_set in info.pod_sets]
        yield invalid(jobs, names, f"one must be called {LAUNCHER}: it runs the command of the TrainJob")
        return
    for field, value in (("replicas", launcher.replicas), ("template.spec.parallelism", launcher.count)):
        if value != 1:
            yield invalid(f"{jobs}[{LAUNCHER}].{field}", value, "must be 1: one launcher starts all nodes")


def check_order(info: RuntimeInfo, launcher: PodSet) -> Iterator[FieldError]:
    """Errors of an order with which the launcher could not start once its nodes are ready."""
    jobs, nodes = f"{info.runtime} spec.template.spec.replicatedJobs", info.trainer
    for index, dependency in enumerate(info.job_of(launcher).depends_on or []):
        if dependency.name == nodes.name and dependency.status != "Ready":
            path = f"{jobs}[{launcher.name}].dependsOn[{index}].status"
            yield invalid(path, dependency.status, "must be Ready: the nodes run until the launcher has ended")
    for index, dependency in enumerate(info.job_of(nodes).depends_on or []):
        if dependency.name == launcher.name:
            path = f"{jobs}[{nodes.name}].dependsOn[{index}].name"
            yield invalid(path, launcher.name, "must not be the launcher, which starts once the nodes are ready")


def check_directories(info: RuntimeInfo, directory: str, launcher: PodSet) -> Iterator[FieldError]:
    """Errors of mounts that collide with keys and hostfile, and of paths that ssh cannot use."""
    field = f"{info.runtime} spec.mlPolicy.mpi.SSHAuthMountPath"
    if re.search(r"\s", directory):
        yield invalid(field, directory, "must not contain white space: it becomes part of the arguments of ssh")
    if posixpath.normpath(directory) == hostfile.DIRECTORY:
        yield invalid(field, directory, f"must be another directory: {hostfile.PATH} is the hostfile")
    jobs = f"{info.runtime} spec.template.spec.replicatedJobs"
    for pod_set, names, directories in (
        (info.trainer, {ssh_keys.VOLUME}, {directory}),
        (launcher, {ssh_keys.VOLUME, hostfile.VOLUME}, {directory, hostfile.DIRECTORY}),
    ):
        pods = f"{jobs}[{pod_set.name}].template.spec.template.spec"
        for volume in pod_set.volumes:
            if volume.get("name") in names:
                yield invalid(f"{pods}.volumes", volume["name"], "is the name of a volume of the mpi plugin; rename it")
        taken = {posixpath.normpath(each) for each in directories}
        container = pod_set.main_container
        for mount in container.volume_mounts:
            if posixpath.normpath(mount["mountPath"]) in taken:
                path = f"{pods}.containers[{container.name}].volumeMounts"
                rule = "is where the mpi plugin mounts SSH keys or hostfile; mount the volume elsewhere"
                yield invalid(path, mount["mountPath"], rule)


def warn_of_fewer_devices(info: RuntimeInfo, launcher: PodSet) -> Iterator[AdmissionWarning]:
    """A launcher that trains gets as many processes as each node, also where it has fewer devices for them."""
    own, of_node = (info.devices_of(pod_set.main_container).count for pod_set in (launcher, info.trainer))
    if info.launcher_trains and own < of_node:
        job = f"{info.runtime} spec.template.spec.replicatedJobs[{launcher.name}].template.spec.template.spec"
        text = f"has {own} GPUs, but as many processes as a node with {of_node}; state as many for it"
        yield AdmissionWarning(f"{job}.containers[{launcher.main_container.name}].resources", text)


def warn_of_unreadable_keys(info: RuntimeInfo, launcher: PodSet) -> Iterator[AdmissionWarning]:
    """Errors of a user that cannot read the private key; admission may still add a fsGroup."""
    for pod_set in (info.trainer, launcher):
        pod = pod_spec_of(info.job_of(pod_set))
        containers = {container["name"]: container for container in pod.get("containers") or []}
        context = pod.get("securityContext") or {}
        own = containers[pod_set.main_container.name].get("securityContext") or {}
        user = own.get("runAsUser", context.get("runAsUser"))
        is_other = bool(user) or (user is None and bool(own.get("runAsNonRoot", context.get("runAsNonRoot"))))
        jobs = f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"
        field = f"{jobs}.template.spec.template.spec.securityContext.fsGroup"
        if is_other and context.get("fsGroup") is None:
            yield AdmissionWarning(field, "is needed for a user other than root to read the SSH key")
        if user == 0 and context.get("fsGroup") is not None:
            yield AdmissionWarning(field, "lets a group read the SSH key, which ssh refuses when it runs as root")
