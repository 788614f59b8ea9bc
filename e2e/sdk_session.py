"""What a data scientist does with the SDK of Kubeflow; prints what it answers as one JSON object.

It runs in a process of its own: the SDK needs an older client of Kubernetes than the other tests.
"""

from __future__ import annotations

import json
from typing import Any

from kubeflow.trainer import CustomTrainer, CustomTrainerContainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerArgs,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)


def train(rate: str) -> None:
    """Runs on each node."""
    import os  # noqa: PLC0415 - the SDK sends this function alone

    print("node", os.environ["PET_NODE_RANK"], "of", os.environ["PET_NNODES"], "at", rate)


def node_selector(**labels: str) -> RuntimePatch:
    """A patch of the pods that train."""
    pods = PodTemplatePatch(spec=PodSpecPatch(node_selector=labels))
    job = ReplicatedJobPatch(name="node", template=JobTemplatePatch(spec=JobSpecPatch(template=pods)))
    template = JobSetTemplatePatch(spec=JobSetSpecPatch(replicated_jobs=[job]))
    return RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=template))


def main() -> None:
    client = TrainerClient(KubernetesBackendConfig(namespace="default"))
    answers: dict[str, Any] = {"runtimes": {each.name: each.trainer.framework for each in client.list_runtimes()}}
    runtime = client.get_runtime("torch-distributed")

    trainer = CustomTrainer(
        func=train, func_args={"rate": "3"}, num_nodes=2, resources_per_node={"cpu": 1, "memory": "64Mi"}
    )
    options = [Name("function"), Labels({"a": "b"}), Annotations({"c": "d"}), ActiveDeadlineSeconds(600)]
    name = client.train(runtime=runtime, trainer=trainer, options=options)
    seen: list[str] = []
    job = client.wait_for_job_status(name, timeout=120, callbacks=[lambda each: seen.append(each.status)])
    answers["function"] = {
        "name": name,
        "first": seen[0],
        "last": job.status,
        "nodes": job.num_nodes,
        "steps": {step.name: step.status for step in job.steps},
        "log": list(client.get_job_logs(name)),
        "events": sorted({event.reason for event in client.get_job_events(name)}),
    }

    options = [TrainerCommand(["sleep"]), TrainerArgs(["600"]), node_selector(disk="fast")]
    waiting = client.train(runtime=runtime, trainer=CustomTrainerContainer(image="any"), options=options)
    answers["waiting"] = {"name": waiting, "status": client.get_job(waiting).status}
    client.delete_job(waiting)

    options = [*options[:2], ActiveDeadlineSeconds(2)]
    failing = client.train(runtime=runtime, trainer=CustomTrainerContainer(image="any"), options=options)
    answers["failing"] = client.wait_for_job_status(failing, status={"Failed"}, timeout=120).status
    answers["jobs"] = sorted(each.name for each in client.list_jobs(runtime)) == sorted([name, failing])
    for each in (name, failing):
        client.delete_job(each)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
