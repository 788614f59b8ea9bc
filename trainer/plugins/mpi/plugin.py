"""MPI: a launcher runs `mpirun`, which starts the training on the nodes over SSH (KEP-2170, "MPI Runtime").

Every node is a pod with an sshd. The launcher is a pod of its own, which may train as well (`runLauncherAsNode`), and
gets the command of the TrainJob. What `mpirun` has to know about the nodes is in a hostfile and in the environment of
the launcher, so that the command stays plain: `mpirun python train.py` starts `numProcPerNode` processes on each node.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainjob import TrainJob
from trainer.framework import (
    Component,
    Finding,
    PodSet,
    Reader,
    RuntimeInfo,
    Watch,
    by_name,
    check_processes,
    check_reserved_env,
    pod_spec_of,
    stated_processes,
    upsert,
)
from trainer.plugins.mpi import hostfile, ssh_keys
from trainer.plugins.mpi.hostfile import (
    HOSTFILES,
    IMPLEMENTATIONS,
    Implementation,
    hostfile_config_map,
    hostfile_volume,
)
from trainer.plugins.mpi.ssh_keys import KeyStyle, key_volume, mount, ssh_options
from trainer.plugins.mpi.start import check_start, start
from trainer.plugins.mpi.validation import (
    check_directories,
    check_launcher,
    check_order,
    warn_of_fewer_devices,
    warn_of_unreadable_keys,
)

SSH_PORT = "ssh"
"""Name of the container port of the nodes' sshd; without it the images' ssh configuration must have the port."""


class MPI:
    """Builds the SSH key of launcher and nodes and the hostfile of the launcher."""

    name = "mpi"
    ml_policy_sources = frozenset({"mpi"})
    keys = KeyStyle()

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """The hostfiles, their JobSets, and the events of a lost key; no key is cached."""
        yield from HOSTFILES.watches()
        yield from ssh_keys.KEYS.watches()

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse runtimes that cannot be launched, reserved variables, and wrong numbers of processes."""
        policy = info.ml_policy.mpi
        if policy is None:
            return
        yield from check_launcher(info)
        gpus = info.devices_of(info.trainer.main_container).count
        yield from check_processes(stated_processes(new), gpus, "an MPI runtime does not count CPUs")
        yield from check_reserved_env(info, new, self.implementation(info).reserved.keys(), self.name)
        if info.launcher is not None:
            yield from check_order(info, info.launcher)
            yield from check_start(info, info.launcher)
            yield from warn_of_fewer_devices(info, info.launcher)
            yield from check_directories(info, policy.ssh_auth_mount_path, info.launcher)
            yield from warn_of_unreadable_keys(info, info.launcher)

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Mount keys and hostfile, set `mpirun`'s variables, and order launcher and nodes."""
        policy, launcher = info.ml_policy.mpi, info.launcher
        if policy is None or launcher is None or launcher.main is None or not info.trains:
            return
        info.head_address()  # refuses pods without DNS names, which the hostfile consists of
        self.assign_roles(info, train_job, launcher)
        self.start(info, launcher)
        port = ssh_port(info)
        for pod_set in (launcher, info.trainer):
            mode = self.keys.private_mode_in(pod_spec_of(info.job_of(pod_set)), names_port=port is not None)
            upsert(pod_set.volumes, [key_volume(info, train_job, self.keys, mode)], by_name)
            pod_set.main_container.mount([mount(ssh_keys.VOLUME, policy.ssh_auth_mount_path, self.keys)])
        upsert(launcher.volumes, [hostfile_volume(info)], by_name)
        container = launcher.main_container
        container.mount([mount(hostfile.VOLUME, hostfile.DIRECTORY, self.keys)])
        implementation = self.implementation(info)
        present = {variable["name"] for variable in container.env}
        container.set_env(
            {"name": name, "value": value} for name, value in implementation.defaults.items() if name not in present
        )
        container.set_env(
            implementation.environment(
                hostfile=hostfile.PATH,
                slots=self.slots_per_node(info, train_job),
                ssh_options=ssh_options(policy.ssh_auth_mount_path, port),
            )
        )

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The Secret with the keys, and the ConfigMap with the hostfile."""
        if info.ml_policy.mpi is None or not info.trains:
            return
        yield ssh_keys.key_secret(info, train_job, self._reader, self.keys)
        hosts, slots = self.hosts(info), self.slots_per_node(info, train_job)
        yield hostfile_config_map(info, train_job, hosts, self.implementation(info), slots=slots, reader=self._reader)

    def assign_roles(self, info: RuntimeInfo, train_job: TrainJob, launcher: PodSet) -> None:
        """Count a launcher that trains as a node, and let the training end and report as the launcher does."""
        if info.launcher_trains:
            count_as_node(info)
        info.succeed_without([info.trainer])  # whose sshd never ends
        info.report_from(launcher)  # whose log has the nodes' output

    def start(self, info: RuntimeInfo, launcher: PodSet) -> None:
        """Order launcher and nodes; sizes are final."""
        assert info.ml_policy.mpi is not None
        start(info, launcher, info.ml_policy.mpi.ssh_auth_mount_path, ssh_port(info))

    def implementation(self, info: RuntimeInfo) -> Implementation:
        """The implementation of MPI in the images of a runtime."""
        assert info.ml_policy.mpi is not None
        return IMPLEMENTATIONS[info.ml_policy.mpi.mpi_implementation]

    def hosts(self, info: RuntimeInfo) -> list[PodSet]:
        """The pods that train, in the order of their ranks; a launcher that trains comes first."""
        launcher = info.launcher if info.launcher_trains else None
        return [info.trainer] if launcher in (None, info.trainer) else [launcher, info.trainer]

    def slots_per_node(self, info: RuntimeInfo, train_job: TrainJob) -> int:
        """The TrainJob's number, else the runtime's, else one for each GPU of a node, else 1.

        `auto` and `gpu` of the TrainJob stand for the GPUs, whatever the runtime says.
        """
        stated, policy = stated_processes(train_job), info.ml_policy.mpi
        if isinstance(stated, int):
            return stated
        if stated is None and policy is not None and policy.num_proc_per_node is not None:
            return policy.num_proc_per_node
        return self.gpus_per_node(info) or 1

    def gpus_per_node(self, info: RuntimeInfo) -> int:
        """The GPUs of a node."""
        return info.devices_of(info.trainer.main_container).count


def ssh_port(info: RuntimeInfo) -> int | None:
    """The port of the sshd of the nodes; None where the configuration of the image says it."""
    ports = info.trainer.main_container.ports
    return next((port["containerPort"] for port in ports if port.get("name") == SSH_PORT), None)


def count_as_node(info: RuntimeInfo) -> None:
    """Reduce the other nodes by one, as the launcher is a node; after a single node there is no Job for others."""
    nodes = info.trainer
    if nodes.count == 1:
        nodes.replicas = 0
    else:
        nodes.count -= 1
