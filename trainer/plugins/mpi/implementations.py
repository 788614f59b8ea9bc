"""The hostfile syntax and environment variables of each implementation of MPI.

* Open MPI up to 4 starts its daemons with ORTE, Open MPI 5 with PRRTE, which has variables of its own: both get theirs.
  Without resolving names, PRRTE would not see that a launcher which trains as well is the host that it runs on.
* MPICH and Intel MPI start theirs with Hydra, and these connect back to it. It would give them its host name, which
  without the subdomain no other pod can resolve; given a network interface, it tells its address instead. Kubernetes
  calls the interface of every pod eth0. Intel's Hydra, and that of MPICH 4, see that a launcher which trains as well is
  the host that they run on only by its host name; by any other they would log in to it, where no sshd is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
