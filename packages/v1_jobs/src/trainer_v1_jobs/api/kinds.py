"""The kinds: their specs, and what the operator assumes where a spec is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from trainer.api import patterns
from trainer.api.kubeflow_v1 import (
    JAX_JOBS,
    MPI_JOBS,
    MPI_JOBS_V2BETA1,
    PADDLE_JOBS,
    PYTORCH_JOBS,
    SERVED_JOBS,
    TF_JOBS,
    XGBOOST_JOBS,
)
from trainer.api.metadata import ObjectMetadata
from trainer.api.model import ApiModel, Count, Int32, NumberOfProcesses, atomic_list, text
from trainer.kube.resource import Resource
from trainer_v1_jobs.api.policies import CleanPodPolicy, Metrics, ReplicaSpec, ReplicaSpecs, RestartPolicy, RunPolicy
from trainer_v1_jobs.api.status import JobStatus

_Text: TypeAlias = Annotated[str, Field(max_length=4096)]
_Port: TypeAlias = Annotated[Int32, Field(ge=1, json_schema_extra={"maximum": 65535})]


class RDZVConf(ApiModel):
    """One setting of the rendezvous."""

    key: _Text | None = None
    """Name of the setting."""
    value: _Text | None = None
    """Its value."""


class ElasticPolicy(ApiModel):
    """Elastic PyTorch training: workers come and go between the bounds."""

    min_replicas: Annotated[Int32, Field(ge=1)] | None = None
    """The fewest workers. Defaults to maxReplicas, or the number of workers."""
    max_replicas: Annotated[Int32, Field(ge=1)] | None = None
    """The most workers. Defaults to minReplicas, or the number of workers."""
    rdzv_backend: Literal["c10d", "etcd", "etcd-v2"] | None = None
    """Where the agents meet. Defaults to c10d."""
    rdzv_port: _Port | None = None
    """Port of the rendezvous. Defaults to the port of the first worker."""
    rdzv_host: _Text | None = None
    """Host of the rendezvous. Defaults to the first worker."""
    rdzv_id: _Text | None = None
    """Name under which the agents meet."""
    rdzv_conf: Annotated[list[RDZVConf], Field(json_schema_extra=atomic_list(64))] | None = None
    """Further settings of the rendezvous."""
    standalone: bool | None = None
    """Whether each node meets nobody but itself."""
    n_proc_per_node: Annotated[Int32, Field(ge=1)] | None = None
    """Deprecated: spec.nprocPerNode."""
    max_restarts: Count | None = None
    """How often an agent starts its workers again."""
    metrics: Metrics | None = None
    """Metrics of the autoscaler that chooses the number of workers; there is none without them."""


class PaddleElasticPolicy(ApiModel):
    """Bounds of an elastic PaddleJob, for which the operator makes no autoscaler."""

    min_replicas: Annotated[Int32, Field(ge=1)] | None = None
    """The fewest workers."""
    max_replicas: Annotated[Int32, Field(ge=1)] | None = None
    """The most workers."""
    max_restarts: Count | None = None
    """How often the training may be restarted."""
    metrics: Metrics | None = None
    """Metrics of an autoscaler."""


class JobSpec(ApiModel):
    """What the spec of every kind has."""

    run_policy: RunPolicy | None = None
    """How the job runs and ends."""


class PyTorchJobSpec(JobSpec):
    """The desired PyTorchJob."""

    elastic_policy: ElasticPolicy | None = None
    """Elastic training."""
    pytorch_replica_specs: ReplicaSpecs
    """The roles: Master, at most one, and Worker."""
    nproc_per_node: NumberOfProcesses | None = None
    """Processes on every node: auto, cpu, gpu or a number. Defaults to auto."""


class JAXJobSpec(JobSpec):
    """The desired JAXJob."""

    jax_replica_specs: ReplicaSpecs
    """The only role, Worker."""


class TFJobSpec(JobSpec):
    """The desired TFJob."""

    tf_replica_specs: ReplicaSpecs
    """The roles: Chief or Master, at most one, PS, Worker and Evaluator."""
    success_policy: Literal["", "AllWorkers"] | None = None
    """When the job has succeeded without a chief: with the first worker, or with AllWorkers. Defaults to the first."""
    enable_dynamic_worker: bool | None = None
    """Whether workers know of themselves and the parameter servers only. Defaults to false."""


class XGBoostJobSpec(JobSpec):
    """The desired XGBoostJob."""

    xgb_replica_specs: ReplicaSpecs
    """The roles: Master, exactly one, and Worker."""


class PaddleJobSpec(JobSpec):
    """The desired PaddleJob."""

    elastic_policy: PaddleElasticPolicy | None = None
    """Bounds of the number of workers."""
    paddle_replica_specs: ReplicaSpecs
    """The roles: Master, which is the parameter server, and Worker."""


class MPIJobSpec(JobSpec):
    """The desired MPIJob of the Training Operator."""

    slots_per_worker: Annotated[Int32, Field(ge=1)] | None = None
    """Processes on every worker. Defaults to 1."""
    clean_pod_policy: CleanPodPolicy | None = None
    """Deprecated: that of runPolicy."""
    main_container: Annotated[str, Field(max_length=63)] | None = None
    """Name of the container that trains. Defaults to the first."""
    mpi_replica_specs: ReplicaSpecs
    """The roles: Launcher, exactly one, and Worker."""


class MPIJobV2beta1Spec(JobSpec):
    """The desired MPIJob of the MPI Operator."""

    slots_per_worker: Annotated[Int32, Field(ge=1)] | None = None
    """Processes on every worker. Defaults to 1."""
    run_launcher_as_worker: bool | None = None
    """Whether the launcher trains as well. Defaults to false."""
    ssh_auth_mount_path: (
        Annotated[str, Field(json_schema_extra=text(pattern=patterns.ABSOLUTE_PATH, longest=4096))] | None
    ) = None
    """Directory of the SSH keys. Defaults to /root/.ssh."""
    launcher_creation_policy: Literal["AtStartup", "WaitForWorkersReady"] | None = None
    """When the launcher starts. Defaults to AtStartup."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] | None = None
    """Flavour of the host file. Defaults to OpenMPI."""
    mpi_replica_specs: ReplicaSpecs
    """The roles: Launcher, exactly one, and Worker."""


class Job(ApiModel):
    """What every kind has."""

    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: JobSpec
    """The desired training."""
    status: JobStatus | None = None
    """How the job is doing; written by the system."""


class PyTorchJob(Job):
    """A training with PyTorch."""

    api_version: Literal["kubeflow.org/v1"] = "kubeflow.org/v1"
    kind: Literal["PyTorchJob"] = "PyTorchJob"
    spec: PyTorchJobSpec
    """The desired training."""


class JAXJob(Job):
    """A training with JAX (KEP-2145)."""

    api_version: Literal["kubeflow.org/v1"] = "kubeflow.org/v1"
    kind: Literal["JAXJob"] = "JAXJob"
    spec: JAXJobSpec
    """The desired training."""


class TFJob(Job):
    """A training with TensorFlow."""

    api_version: Literal["kubeflow.org/v1"] = "kubeflow.org/v1"
    kind: Literal["TFJob"] = "TFJob"
    spec: TFJobSpec
    """The desired training."""


class XGBoostJob(Job):
    """A training with XGBoost or LightGBM."""

    api_version: Literal["kubeflow.org/v1"] = "kubeflow.org/v1"
    kind: Literal["XGBoostJob"] = "XGBoostJob"
    spec: XGBoostJobSpec
    """The desired training."""


class PaddleJob(Job):
    """A training with PaddlePaddle."""

    api_version: Literal["kubeflow.org/v1"] = "kubeflow.org/v1"
    kind: Literal["PaddleJob"] = "PaddleJob"
    spec: PaddleJobSpec
    """The desired training."""


class MPIJob(Job):
    """A training with MPI over kubectl exec, of the Training Operator."""

    api_version: Literal["kubeflow.org/v1"] = "kubeflow.org/v1"
    kind: Literal["MPIJob"] = "MPIJob"
    spec: MPIJobSpec
    """The desired training."""


class MPIJobV2beta1(Job):
    """A training with MPI over SSH, of the MPI Operator."""

    api_version: Literal["kubeflow.org/v2beta1"] = "kubeflow.org/v2beta1"
    kind: Literal["MPIJob"] = "MPIJob"
    spec: MPIJobV2beta1Spec
    """The desired training."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind, and what the operator assumes where a job is silent."""

    resource: Resource
    """Where the API server has its objects."""
    model: type[Job]
    """Reads its objects."""
    replicas_field: str
    """Member of the spec that has the roles."""
    roles: tuple[str, ...]
    """Names of the roles, in the order in which their pods are numbered."""
    restart_policy: RestartPolicy
    """Of roles that name none, but for those in `restart_policies`."""
    container: str = ""
    """Name that one container of every pod must have. Defaults to none: the first container is meant."""
    port_name: str = ""
    """Name of the port at which pods meet. Defaults to none."""
    port: int = 0
    """Its number where no container says it. Defaults to none."""
    restart_policies: Mapping[str, RestartPolicy] = field(default_factory=dict)
    """Of single roles that name none. Defaults to none."""

    def replica_specs(self, job: Job) -> dict[str, ReplicaSpec]:
        """The roles of a job of this kind, in its order."""
        found: dict[str, ReplicaSpec] = getattr(job.spec, self.replicas_field.replace("ReplicaSpecs", "_replica_specs"))
        return found


KINDS: Final[Mapping[tuple[str, str], JobKind]] = {
    (kind.resource.api_version, kind.resource.kind): kind
    for kind in (
        JobKind(
            PYTORCH_JOBS, PyTorchJob, "pytorchReplicaSpecs", ("Master", "Worker"), "OnFailure", "pytorch",
            "pytorchjob-port", 23456,
        ),
        JobKind(JAX_JOBS, JAXJob, "jaxReplicaSpecs", ("Worker",), "Never", "jax", "jaxjob-port", 6666),
        JobKind(
            TF_JOBS, TFJob, "tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator"), "Never", "tensorflow",
            "tfjob-port", 2222,
        ),
        JobKind(
            XGBOOST_JOBS, XGBoostJob, "xgbReplicaSpecs", ("Master", "Worker"), "Never", "xgboost",
            "xgboostjob-port", 9999,
        ),
        JobKind(
            PADDLE_JOBS, PaddleJob, "paddleReplicaSpecs", ("Master", "Worker"), "OnFailure", "paddle", "master", 36543
        ),
        JobKind(MPI_JOBS, MPIJob, "mpiReplicaSpecs", ("Launcher", "Worker"), "Never", "", "mpi-port", 9999),
        JobKind(
            MPI_JOBS_V2BETA1, MPIJobV2beta1, "mpiReplicaSpecs", ("Launcher", "Worker"), "Never",
            restart_policies={"Launcher": "OnFailure"},
        ),
    )
}  # fmt: skip
"""The kinds by apiVersion and kind."""

SERVED_KINDS: Final = tuple(KINDS[each] for each in SERVED_JOBS)
"""The kinds that a manager can serve."""
