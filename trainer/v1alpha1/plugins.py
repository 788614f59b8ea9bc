"""The plugins of a cluster of v1alpha1: what Kubeflow Trainer (Go) does otherwise than KEP-2170, or does not do."""

from __future__ import annotations

from collections.abc import Mapping

from trainer.api.trainjob import TrainJob
from trainer.framework import Ancestor, PluginFactory, PodSet, RuntimeInfo, stated_ancestor
from trainer.kube.objects import Object
from trainer.plugins import BUILT_IN
from trainer.plugins.jax.plugin import Jax
from trainer.plugins.mpi.hostfile import IMPLEMENTATIONS, Implementation
from trainer.plugins.mpi.plugin import MPI, ssh_port
from trainer.plugins.mpi.ssh_keys import KeyStyle
from trainer.plugins.mpi.start import waits_for_nodes
from trainer.plugins.torch.plugin import Torch
from trainer.plugins.xgboost import WORKERS_PER_NODE, XGBoost
from trainer.v1alpha1.torchtune import complete_tune_run


class V1Alpha1Torch(Torch):
    """Starts torchrun on a single node as on several, and scripts only by torchrun."""

    def rendezvous(self, info: RuntimeInfo, train_job: TrainJob) -> list[Object]:
        """Those of several nodes, also for one."""
        return [each for each in super().rendezvous(info, train_job) if each["name"] != "PET_STANDALONE"]

    def complete(self, info: RuntimeInfo, train_job: TrainJob, variables: list[Object]) -> list[Object]:
        """Complete a command `tune run`; no variables are added."""
        return complete_tune_run(info, train_job, variables)


class V1Alpha1Jax(Jax):
    """Runs one process on a node, with the defaults of JAX."""

    def defaults(self, info: RuntimeInfo) -> dict[str, str]:  # noqa: ARG002 - see Jax
        """None."""
        return {}

    def stated_processes(self, train_job: TrainJob) -> None:  # noqa: ARG002 - see Jax
        """Not read."""
        return


class V1Alpha1XGBoost(XGBoost):
    """Runs a worker for each GPU of a node, or one."""

    def variables(self, info: RuntimeInfo, workers: int) -> list[Object]:
        """All but the number of workers of a node."""
        return [each for each in super().variables(info, workers) if each["name"] != WORKERS_PER_NODE]

    def stated_workers(self, train_job: TrainJob) -> None:  # noqa: ARG002 - see XGBoost
        """Not read."""
        return


_OPEN_MPI = Implementation(
    line=IMPLEMENTATIONS["OpenMPI"].line,
    reserved={
        "OMPI_MCA_orte_default_hostfile": "{hostfile}",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": "{slots}",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    },
)


class V1Alpha1MPI(MPI):
    """Leaves the order of launcher and nodes to the runtime, and the configuration of ssh to the image."""

    keys = KeyStyle(is_ecdsa=True, default_mode=0o400, group_mode=0o640, read_only=False)

    def assign_roles(self, info: RuntimeInfo, train_job: TrainJob, launcher: PodSet) -> None:
        """Set the number of nodes, of which one stays beside a launcher that trains.

        Where the TrainJob states none, `mlPolicy.numNodes` counts if it is more than the 1 of the shipped runtimes and
        is not stated for the nodes themselves.
        """
        nodes, policy = info.trainer, info.ml_policy
        stated = train_job.spec.trainer.num_nodes if train_job.spec.trainer else None
        is_launchers = stated_ancestor(info.job_of(launcher)) == Ancestor.TRAINER
        if stated is None and is_launchers and (policy.num_nodes or 0) > 1:
            stated = policy.num_nodes
        if stated is not None and nodes is not launcher:
            nodes.count = max(stated - 1, 1) if info.launcher_trains else stated

    def start(self, info: RuntimeInfo, launcher: PodSet) -> None:
        """Order launcher and nodes if the runtime says that the launcher waits."""
        if waits_for_nodes(info, launcher):
            super().start(info, launcher)

    def implementation(self, info: RuntimeInfo) -> Implementation:
        """Open MPI, configured by the image unless the nodes name the port of their sshd."""
        return _OPEN_MPI if ssh_port(info) is None else super().implementation(info)

    def hosts(self, info: RuntimeInfo) -> list[PodSet]:
        """The pods that train, in the order of the runtime."""
        return sorted(super().hosts(info), key=info.pod_sets.index)

    def gpus_per_node(self, info: RuntimeInfo) -> int:
        """The GPUs of a node, else of the launcher, whose resources may be the only ones of the TrainJob."""
        return super().gpus_per_node(info) or info.devices_of(info.main_container).count


PLUGINS: Mapping[str, PluginFactory] = {
    **BUILT_IN,
    "jax": lambda _: V1Alpha1Jax(),
    "mpi": lambda context: V1Alpha1MPI(context.reader),
    "torch": lambda _: V1Alpha1Torch(),
    "xgboost": lambda _: V1Alpha1XGBoost(),
}
"""Factories of the plugins of this package, by name."""
