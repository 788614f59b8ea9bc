"""MPI: a launcher runs `mpirun`, which starts the training on the nodes over SSH (KEP-2170, "MPI Runtime").

Every node is a pod with an sshd. The launcher is a pod of its own, which may train as well (`runLauncherAsNode`), and
gets the command of the TrainJob. What `mpirun` has to know about the nodes is in a hostfile and in the environment of
the launcher, so that the command stays plain: `mpirun python train.py` starts `numProcPerNode` processes on each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework import Watch, by_name, check_reserved_env, upsert
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins.mpi import ssh_keys
from trainer.plugins.mpi.hostfile import HOSTFILES, PATH, hostfile_config_map, hostfile_mount, hostfile_volume
from trainer.plugins.mpi.implementations import IMPLEMENTATIONS
from trainer.plugins.mpi.launcher import count_as_node, end_with_launcher, speak_for_nodes, start_after_nodes
from trainer.plugins.mpi.processes import check_slots, slots_per_node
from trainer.plugins.mpi.ssh_keys import key_mount, key_volume, ssh_options
from trainer.plugins.mpi.validation import check_directories, check_launcher, check_order, warn_of_unreadable_keys
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import AdmissionWarning, Component, Reader, RuntimeInfo
    from trainer.kube.field_errors import FieldError

SSH_PORT = "ssh"
"""Name of the container port of the nodes' sshd; without it the images' ssh configuration must have the port."""


class MPI:
    """Builds the SSH key of launcher and nodes and the hostfile of the launcher."""

    name = "mpi"
    ml_policy_sources = frozenset({"mpi"})

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """The hostfiles, their JobSets, and the events of a lost key; keys are never read."""
        yield Watch(CONFIG_MAPS, HOSTFILES)
        yield Watch(JOBSETS, triggers=False)
        yield from ssh_keys.watches()

    def validate(
        self,
        info: RuntimeInfo,
        old: TrainJob | None,  # noqa: ARG002
        new: TrainJob,
    ) -> Iterator[FieldError | AdmissionWarning]:
        """Refuse runtimes that cannot be launched, reserved variables, and wrong numbers of processes."""
        policy = info.ml_policy.mpi
        if policy is None:
            return
        yield from check_launcher(info)
        yield from check_slots(info, new)
        yield from check_reserved_env(info, new, IMPLEMENTATIONS[policy.mpi_implementation].reserved.keys(), self.name)
        if info.launcher is not None:
            yield from check_order(info, info.launcher)
            yield from check_directories(info, policy.ssh_auth_mount_path, info.launcher)
            yield from warn_of_unreadable_keys(info, info.launcher)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Mount keys and hostfile, set `mpirun`'s variables, and order launcher and nodes."""
        policy, launcher = info.ml_policy.mpi, info.launcher
        if policy is None or launcher is None:
            return
        info.head_address()  # refuses pods without DNS names, which the hostfile consists of
        if policy.run_launcher_as_node:
            count_as_node(info)
        start_after_nodes(info, launcher)
        end_with_launcher(info)
        speak_for_nodes(info, launcher)
        for pod_set in (launcher, info.trainer):
            upsert(pod_set.volumes, [key_volume(train_job)], by_name)
            pod_set.main_container.mount([key_mount(policy.ssh_auth_mount_path)])
        upsert(launcher.volumes, [hostfile_volume(info)], by_name)
        container = launcher.main_container
        container.mount([hostfile_mount()])
        implementation = IMPLEMENTATIONS[policy.mpi_implementation]
        present = {variable["name"] for variable in container.env}
        container.set_env(
            {"name": name, "value": value} for name, value in implementation.defaults.items() if name not in present
        )
        container.set_env(
            implementation.environment(
                hostfile=PATH,
                slots=slots_per_node(info, train_job),
                ssh_options=ssh_options(policy.ssh_auth_mount_path, _ssh_port(info)),
            )
        )

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The Secret with the keys, and the ConfigMap with the hostfile."""
        policy = info.ml_policy.mpi
        if policy is None:
            return
        implementation = IMPLEMENTATIONS[policy.mpi_implementation]
        yield ssh_keys.key_secret(train_job, self._reader)
        yield hostfile_config_map(info, train_job, implementation, slots_per_node(info, train_job), self._reader)


def _ssh_port(info: RuntimeInfo) -> int | None:
    ports = info.trainer.main_container.ports
    return next((port["containerPort"] for port in ports if port.get("name") == SSH_PORT), None)
