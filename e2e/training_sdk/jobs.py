"""PyTorchJobs and JAXJobs of the SDK's models, whose pods run until a file is there."""

from __future__ import annotations

from pathlib import Path

from kubeflow.training import KubeflowOrgV1JAXJob, KubeflowOrgV1PyTorchJob
from kubeflow.training.models import (
    KubeflowOrgV1JAXJobSpec,
    KubeflowOrgV1PyTorchJobSpec,
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
    V1Container,
    V1HostPathVolumeSource,
    V1ObjectMeta,
    V1PodSpec,
    V1PodTemplateSpec,
    V1Volume,
    V1VolumeMount,
)

IMAGE = "python:3.11-slim"
PYTORCH, JAX = "PyTorchJob", "JAXJob"


def job_of(
    kind: str, name: str, line: str, gate: Path, *, pods: int = 2, restarts: str = "Never", suspend: bool = False
) -> KubeflowOrgV1PyTorchJob | KubeflowOrgV1JAXJob:
    """A job of a kind; the first pod of a PyTorchJob is its Master."""
    metadata = V1ObjectMeta(name=name)
    policy = KubeflowOrgV1RunPolicy(clean_pod_policy="None", suspend=suspend)
    if kind == JAX:
        jax = KubeflowOrgV1JAXJobSpec(
            run_policy=policy, jax_replica_specs={"Worker": _replica("jax", line, gate, pods, restarts)}
        )
        return KubeflowOrgV1JAXJob(api_version="kubeflow.org/v1", kind=JAX, metadata=metadata, spec=jax)
    specs = {"Master": _replica("pytorch", line, gate, 1, restarts)}
    if pods > 1:
        specs["Worker"] = _replica("pytorch", line, gate, pods - 1, restarts)
    torch = KubeflowOrgV1PyTorchJobSpec(run_policy=policy, pytorch_replica_specs=specs)
    return KubeflowOrgV1PyTorchJob(api_version="kubeflow.org/v1", kind=PYTORCH, metadata=metadata, spec=torch)


def _replica(container: str, line: str, gate: Path, replicas: int, restarts: str) -> KubeflowOrgV1ReplicaSpec:
    """Pods that run a line of shell, and then until the gate opens."""
    wait = "while [ ! -e /gate/go ]; do sleep 0.2; done"
    mount = V1VolumeMount(name="gate", mount_path="/gate")
    main = V1Container(name=container, image=IMAGE, command=["sh", "-c", f"{line}; {wait}"], volume_mounts=[mount])
    volume = V1Volume(name="gate", host_path=V1HostPathVolumeSource(path=str(gate)))
    pod = V1PodTemplateSpec(spec=V1PodSpec(containers=[main], volumes=[volume]))
    return KubeflowOrgV1ReplicaSpec(replicas=replicas, restart_policy=restarts, template=pod)
