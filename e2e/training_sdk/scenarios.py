"""Scenarios of the SDK `kubeflow-training`: each prints what the SDK has answered.

python -m e2e.training_sdk.scenarios NAMESPACE SCENARIO
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from kubeflow.training import KubeflowOrgV1JAXJob, KubeflowOrgV1PyTorchJob, TrainingClient
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


def train(parameters: dict[str, int]) -> None:
    """What the SDK sends as text to the workers."""
    import torch  # noqa: PLC0415

    group = torch.distributed
    group.init_process_group("gloo")
    total = torch.ones(1) * parameters["weight"]
    group.all_reduce(total)
    print(f"rank {group.get_rank()} of {group.get_world_size()}: {total.item()}", flush=True)  # noqa: T201
    # Without it threads of gloo abort the process now and then while the interpreter ends (pytorch/pytorch#179291). The
    # pod is started again then, and waits for the others, which are done.
    group.destroy_process_group()


def by_hand(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """A PyTorchJob of the models, followed from its creation to its deletion."""
    command = "echo rank $RANK of $WORLD_SIZE"
    specs = {"Master": replica("pytorch", command, gate, 1), "Worker": replica("pytorch", command, gate, 2)}
    job = KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1",
        kind=PYTORCH,
        metadata=V1ObjectMeta(name="hand", namespace=client.namespace),
        spec=KubeflowOrgV1PyTorchJobSpec(
            run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"), pytorch_replica_specs=specs
        ),
    )
    client.create_job(job)
    answer = followed(client, "hand", 3, gate)
    client.delete_job("hand")
    return answer


def of_jax(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """A JAXJob of the models."""
    client.create_job(jax_job(client, "jax", "echo process $PROCESS_ID of $NUM_PROCESSES", gate, 2))
    return followed(client, "jax", 2, gate)


def function(client: TrainingClient, _gate: Path) -> dict[str, Any]:
    """A function of the user, which torchrun starts on two workers."""
    client.create_job(
        name="function",
        train_func=train,
        parameters={"weight": 3},
        num_workers=2,
        num_procs_per_worker=1,
        base_image=IMAGE,
        resources_per_worker={"cpu": 1},
    )
    client.wait_for_job_conditions("function", timeout=240, polling_interval=1)
    logs, _ = client.get_job_logs("function")
    return {"succeeded": client.is_job_succeeded("function"), "master": list(logs.values())}


def failing(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """A job that fails, of which the SDK raises while it waits."""
    client.create_job(jax_job(client, "failing", "exit 4", gate, 1))
    try:
        client.wait_for_job_conditions("failing", timeout=90, polling_interval=1)
    except RuntimeError as error:
        return {"raised": str(error), "failed": client.is_job_failed("failing")}
    return {"raised": "", "failed": False}


def followed(client: TrainingClient, name: str, pods: int, gate: Path) -> dict[str, Any]:
    """What the SDK says of a job while it runs, and in the end."""
    client.wait_for_job_conditions(name, expected_conditions={"Running"}, timeout=90, polling_interval=1)
    is_running = client.is_job_running(name)
    worker = {"is_master": False, "replica_type": "worker", "replica_index": 1}
    deadline = time.monotonic() + 60
    while True:
        logs, _ = client.get_job_logs(name)
        all_logs, _ = client.get_job_logs(name, is_master=False)
        second, _ = client.get_job_logs(name, **worker)
        if len([text for text in all_logs.values() if text]) == pods and logs and second:
            break
        assert time.monotonic() < deadline, (logs, all_logs, second)
        time.sleep(0.5)
    (gate / "go").touch()
    job = client.wait_for_job_conditions(name, timeout=90, polling_interval=1)
    return {
        "created": client.is_job_created(name),
        "ran": is_running,
        "succeeded": client.is_job_succeeded(job=job),
        "running": client.is_job_running(name),
        "conditions": [each.type for each in client.get_job_conditions(name)],
        "completed": client.get_job(name).status.completion_time is not None,
        "listed": [each.metadata.name for each in client.list_jobs()],
        "master": list(logs.values()),
        "all": sorted(all_logs.values()),
        "second": list(second.values()),
    }


def jax_job(client: TrainingClient, name: str, line: str, gate: Path, workers: int) -> KubeflowOrgV1JAXJob:
    """A JAXJob of the models."""
    spec = KubeflowOrgV1JAXJobSpec(
        run_policy=KubeflowOrgV1RunPolicy(), jax_replica_specs={"Worker": replica("jax", line, gate, workers)}
    )
    metadata = V1ObjectMeta(name=name, namespace=client.namespace)
    return KubeflowOrgV1JAXJob(api_version="kubeflow.org/v1", kind=JAX, metadata=metadata, spec=spec)


def replica(container: str, line: str, gate: Path, replicas: int) -> KubeflowOrgV1ReplicaSpec:
    """Pods that run a line of shell, and then until the gate opens."""
    wait = "while [ ! -e /gate/go ]; do sleep 0.2; done"
    mount = V1VolumeMount(name="gate", mount_path="/gate")
    main = V1Container(name=container, image=IMAGE, command=["sh", "-c", f"{line}; {wait}"], volume_mounts=[mount])
    volume = V1Volume(name="gate", host_path=V1HostPathVolumeSource(path=str(gate)))
    pod = V1PodTemplateSpec(spec=V1PodSpec(containers=[main], volumes=[volume]))
    return KubeflowOrgV1ReplicaSpec(replicas=replicas, restart_policy="Never", template=pod)


SCENARIOS = {
    "by_hand": (by_hand, PYTORCH),
    "jax": (of_jax, JAX),
    "function": (function, PYTORCH),
    "failing": (failing, JAX),
}


def main() -> None:
    """Print the answer of a scenario as JSON."""
    namespace, name, gate = sys.argv[1:]
    scenario, kind = SCENARIOS[name]
    print(json.dumps(scenario(TrainingClient(namespace=namespace, job_kind=kind), Path(gate))))  # noqa: T201


if __name__ == "__main__":
    main()
