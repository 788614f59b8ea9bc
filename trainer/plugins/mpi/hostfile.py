"""The hostfile: the hosts that train, and the number of processes of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trainer.api.trainjob import TrainJob
from trainer.framework import BuildError, Component, PodConfigMap, PodSet, Reader, RuntimeInfo, nodes_field
from trainer.kube.field_errors import invalid
from trainer.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Implementation:
    """One implementation; texts have the places {host}, {slots}, {hostfile} and {ssh_options}."""

    line: str
    """A line of the hostfile."""
    reserved: Mapping[str, str]
    """Variables that connect the launcher to its nodes; only the plugin may set them."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that the runtime and the TrainJob may override. Defaults to none."""
    knows_itself_by_dns: bool = True
    """Whether the launcher is called by its DNS name in the hostfile, which only itself reads, else by its host name.
    Defaults to true, because any pod can resolve that."""

    def environment(self, *, hostfile: str, slots: int, ssh_options: str) -> list[Object]:
        """The reserved variables of the launcher."""
        return [
            {"name": name, "value": value.format(hostfile=hostfile, slots=slots, ssh_options=ssh_options)}
            for name, value in self.reserved.items()
        ]

    def hostfile_line(self, host: str, slots: int) -> str:
        """The hostfile's line of a host with its number of processes."""
        return self.line.format(host=host, slots=slots)


_OPEN_MPI = Implementation(
    line="{host} slots={slots}",
    reserved={
        "OMPI_MCA_orte_default_hostfile": "{hostfile}",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": "{slots}",
        "OMPI_MCA_plm_rsh_args": "{ssh_options}",
        "PRTE_MCA_prte_default_hostfile": "{hostfile}",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": "{slots}",
        "PRTE_MCA_prte_do_not_resolve": "false",
        "PRTE_MCA_plm_ssh_args": "{ssh_options}",
    },
    # mpirun refuses to run as root for the sake of machines that people share; a pod is none.
    defaults={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
)
_INTEL = Implementation(
    line="{host}:{slots}",
    reserved={
        "I_MPI_HYDRA_HOST_FILE": "{hostfile}",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "{ssh_options}",
        "I_MPI_PERHOST": "{slots}",
    },
    defaults={"I_MPI_HYDRA_IFACE": "eth0"},
    knows_itself_by_dns=False,
)
_MPICH = Implementation(
    line="{host}:{slots}",
    reserved={
        "HYDRA_HOST_FILE": "{hostfile}",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXTRA_ARGS": "{ssh_options}",
    },
    defaults={"HYDRA_IFACE": "eth0"},
    knows_itself_by_dns=False,
)

IMPLEMENTATIONS: Mapping[str, Implementation] = {"OpenMPI": _OPEN_MPI, "Intel": _INTEL, "MPICH": _MPICH}
"""The implementations by the value of `spec.mlPolicy.mpi.mpiImplementation`."""


HOSTFILE_LABEL = "trainer.kubeflow.org/mpi-hostfile"
"""Label of all hostfiles; only ConfigMaps with it are cached."""

HOSTFILES = PodConfigMap("mpi-hostfile", HOSTFILE_LABEL)
"""The ConfigMaps with the hostfiles."""

VOLUME = "mpi-hostfile"
"""Name of the volume with the hostfile."""

DIRECTORY = "/etc/mpi"
"""Its directory in the launcher (KEP-2170)."""

_KEY = "hostfile"
PATH = f"{DIRECTORY}/{_KEY}"
"""Its path in the launcher."""

_LIMIT = 1024 * 1024
"""Most bytes of a ConfigMap."""


def hostfile_config_map(
    info: RuntimeInfo,
    train_job: TrainJob,
    hosts: Iterable[PodSet],
    implementation: Implementation,
    *,
    slots: int,
    reader: Reader,
) -> Component:
    """The ConfigMap `<job>-mpi-hostfile`; once the JobSet runs, it stays as it is.

    Args:
        info: the training.
        train_job: its TrainJob.
        hosts: the pods that train, in the order of their ranks.
        implementation: of MPI.
        slots: processes of each host.
        reader: says whether the JobSet runs.

    Raises:
        BuildError: there are more nodes than a ConfigMap has room for.
    """
    lines: list[str] = []
    length = 0
    for host in _names(info, hosts, implementation):
        line = f"{implementation.hostfile_line(host, slots)}\n"
        length += len(line)
        if length > _LIMIT:
            rule = f"must be at most {len(lines)}: a ConfigMap has no room for the hostfile of more nodes"
            nodes = info.trainer.replicas * info.trainer.count + info.launcher_trains
            raise BuildError(invalid(nodes_field(info, train_job), nodes, rule))
        lines.append(line)
    return HOSTFILES.component(train_job, {_KEY: "".join(lines)}, reader)


def hostfile_volume(info: RuntimeInfo) -> Object:
    """The volume with the hostfile."""
    items = [{"key": _KEY, "path": _KEY, "mode": 0o444}]
    return {"name": VOLUME, "configMap": {"name": HOSTFILES.name(info.job_name), "items": items}}


def _names(info: RuntimeInfo, hosts: Iterable[PodSet], implementation: Implementation) -> Iterator[str]:
    for pod_set in hosts:
        is_known = pod_set is info.trainer or implementation.knows_itself_by_dns
        yield from (name if is_known else name.partition(".")[0] for name in info.endpoints_of(pod_set))
