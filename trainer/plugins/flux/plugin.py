"""Flux: brokers in all pods are one instance of Flux, which runs the command on all nodes (KEP-2841).

An init container installs Flux, whatever the image of the training has. The first pod leads: its broker waits for those
of the others, runs the command with `flux run`, and ends all of them with its exit code. Without a command the brokers
wait for a user who comes with `kubectl exec`. Flux starts processes of MPI by itself, without SSH.

Variables of the container that trains choose what the API has no field for: FLUX_VIEW_IMAGE, FLUX_NETWORK_DEVICE and
FLUX_QUEUE_POLICY.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from trainer.api.trainjob import TrainJob
from trainer.framework import (
    PROCESSES,
    AdmissionWarning,
    Component,
    Container,
    Finding,
    Reader,
    RuntimeInfo,
    Watch,
    add_init_container,
    by_name,
    check_processes,
    stated_processes,
    trainer_env,
    upsert,
)
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object
from trainer.plugins.flux.curve import CERTIFICATES, certificate_mount, certificate_secret, certificate_volume
from trainer.plugins.flux.scripts import (
    INSTALL,
    SCRIPTS,
    START,
    scripts_config_map,
    scripts_mount,
    scripts_volume,
)

INSTALLER = "flux-installer"
"""Name of the init container that installs Flux."""

VIEW_IMAGE = "FLUX_VIEW_IMAGE"
"""Image with Flux as a view of Spack, for the distribution of the image that trains."""
NETWORK_DEVICE = "FLUX_NETWORK_DEVICE"
"""Network device on which the brokers listen."""
QUEUE_POLICY = "FLUX_QUEUE_POLICY"
"""Queue policy of Flux's scheduler."""

_DEFAULTS: Final = {
    VIEW_IMAGE: "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    NETWORK_DEVICE: "eth0",
    QUEUE_POLICY: "fcfs",
}

_INSTALLATION: Final = {"name": "flux-install", "mountPath": "/mnt/flux"}
_SOFTWARE: Final = {"name": "spack-install", "mountPath": "/opt/software"}
_MEMORY: Final = {"name": "shared-memory", "mountPath": "/dev/shm"}  # noqa: S108 where MPI shares memory

_NAME_LIMIT: Final = 63


class Flux:
    """Installs and configures Flux, and has it run the command."""

    name = "flux"
    ml_policy_sources = frozenset({"flux"})

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """The scripts, their JobSets, and the events of a lost certificate; no certificate is cached."""
        yield from SCRIPTS.watches()
        yield from CERTIFICATES.watches()

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse names that are taken or too long, and processes that cannot share GPUs; warn of pods that hang."""
        if info.ml_policy.flux is None:
            return
        volume = SCRIPTS.name(info.job_name)
        excess = len(volume) - _NAME_LIMIT
        if excess > 0:
            rule = f"is too long by {excess}: pods get the volume {volume}, of at most {_NAME_LIMIT} characters"
            yield invalid("metadata.name", info.job_name, rule)
        nodes = info.trainer
        job = f"{info.runtime} spec.template.spec.replicatedJobs[{nodes.name}].template.spec"
        if nodes.count > 1 and info.job_of(nodes).template.spec.backoff_limit != 0:
            rule = "should be 0: a node that starts again is of no use, since the brokers of the others may have ended"
            yield AdmissionWarning(f"{job}.backoffLimit", rule)
        if any(container.name == INSTALLER for container in nodes.init_containers):
            rule = "is the name of the init container that installs Flux; rename yours"
            yield invalid(f"{job}.template.spec.initContainers", INSTALLER, rule)
        yield from _check_processes(info, new)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Install Flux before the training, and put its broker in front of the command."""
        if info.ml_policy.flux is None:
            return
        info.head_address()  # refuses pods without DNS names, by which the brokers find each other
        nodes, container = info.trainer, info.main_container
        memory: Object = {"name": _MEMORY["name"], "emptyDir": {"medium": "Memory"}}
        volumes: list[Object] = [
            {"name": _SOFTWARE["name"], "emptyDir": {}},
            {"name": _INSTALLATION["name"], "emptyDir": {}},
            scripts_volume(info),
            memory,
            certificate_volume(info, train_job),
        ]
        upsert(nodes.volumes, volumes, by_name)
        installer = Container(
            INSTALLER,
            image=_settings(info, train_job)[VIEW_IMAGE],
            command=[*INSTALL],
            volume_mounts=[{**_INSTALLATION}, scripts_mount(info)],
        )
        add_init_container(info, nodes, installer)
        container.mount([{**_INSTALLATION}, {**_SOFTWARE}, scripts_mount(info), certificate_mount(), {**_MEMORY}])
        container.command = [*START, *_handed_on([*container.command, *container.args])]
        container.args = []

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The Secret with the certificate, and the ConfigMap with the scripts."""
        if info.ml_policy.flux is None:
            return
        settings = _settings(info, train_job)
        yield certificate_secret(info, train_job, self._reader)
        yield scripts_config_map(
            info,
            train_job,
            self._reader,
            processes=_processes_per_node(info, train_job),
            gpus=info.devices_of(info.main_container).count,
            device=settings[NETWORK_DEVICE],
            queue_policy=settings[QUEUE_POLICY],
        )


def _settings(info: RuntimeInfo, train_job: TrainJob) -> dict[str, str]:
    """The defaults, with what the runtime and, above it, the TrainJob say in variables."""
    stated = (*info.main_container.env, *trainer_env(train_job))
    found = {each["name"]: each["value"] for each in stated if each["name"] in _DEFAULTS and each.get("value")}
    return _DEFAULTS | found


def _handed_on(words: list[str]) -> list[str]:
    """The words of a command as arguments of the entrypoint: one argument where the entrypoint can split it again."""
    is_plain = len(words) == 1 or all(shlex.quote(word) == word for word in words)
    return [" ".join(words)] if is_plain else words


def _processes_per_node(info: RuntimeInfo, train_job: TrainJob) -> int:
    """The TrainJob's number, or one for each GPU where it asks for that; else the runtime's."""
    stated, policy = stated_processes(train_job), info.ml_policy.flux
    if isinstance(stated, int):
        return stated
    assert policy is not None, "only runtimes of Flux get here"
    gpus = 0 if stated is None else info.devices_of(info.main_container).count
    return gpus or policy.num_proc_per_node


def _check_processes(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    stated, gpus = stated_processes(train_job), info.devices_of(info.main_container).count
    wrong = list(check_processes(stated, gpus, "a Flux runtime does not count CPUs"))
    yield from wrong
    processes = _processes_per_node(info, train_job)
    if not wrong and gpus % processes:
        field = PROCESSES if stated is not None else f"{info.runtime} spec.mlPolicy.flux.numProcPerNode"
        yield invalid(field, processes, f"must divide {gpus}, the GPUs of a node: Flux gives each process as many")
