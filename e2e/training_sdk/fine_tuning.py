"""The scenario of `train()`: the SDK makes a claim and a PyTorchJob of its images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeflow.training import TrainingClient


def fine_tune(client: TrainingClient, _gate: Path) -> dict[str, Any]:
    """Two workers are to tune a model of the hub with LoRA."""
    from kubeflow.storage_initializer.hugging_face import (  # noqa: PLC0415
        HuggingFaceDatasetParams,
        HuggingFaceModelParams,
        HuggingFaceTrainerParams,
    )
    from peft import LoraConfig  # noqa: PLC0415
    from transformers import AutoModelForSequenceClassification, TrainingArguments  # noqa: PLC0415

    client.train(
        name="tune",
        num_workers=2,
        num_procs_per_worker=1,
        resources_per_worker={"cpu": "100m", "memory": "64Mi"},
        labels={"team": "a"},
        annotations={"example.com/a": "b"},
        init_env_vars={"HF_HOME": "/workspace/.cache"},
        env_vars={"TOKENIZERS_PARALLELISM": "false"},
        model_provider_parameters=HuggingFaceModelParams(
            model_uri="hf://demo/tiny", transformer_type=AutoModelForSequenceClassification, num_labels=3
        ),
        dataset_provider_parameters=HuggingFaceDatasetParams(repo_id="demo/data", split="train[:8]"),
        trainer_parameters=HuggingFaceTrainerParams(
            training_parameters=TrainingArguments(output_dir="/workspace/out", num_train_epochs=2),
            lora_config=LoraConfig(r=4),
        ),
    )
    job = client.wait_for_job_conditions("tune", wait_timeout=120, polling_interval=1)
    pods = client.get_job_pods("tune")
    logs, _ = client.get_job_logs("tune", is_master=False)
    roles = {pod.metadata.name: pod.metadata.labels["training.kubeflow.org/replica-type"] for pod in pods}
    (claim,) = client.core_api.list_namespaced_persistent_volume_claim(client.namespace).items
    return {
        "labels": job.metadata.labels,
        "claim": [claim.metadata.name, claim.status.phase, claim.spec.access_modes],
        "logs": {roles[name]: text for name, text in logs.items()},
        "initializers": {
            roles[pod.metadata.name]: [_seen(each) for each in pod.spec.init_containers or []] for pod in pods
        },
        "containers": [[_seen(each) for each in pod.spec.containers] for pod in pods],
    }


def _seen(container: Any) -> dict[str, Any]:
    """What a pod says about a container."""
    return {"name": container.name, "image": container.image, "env": {each.name: each.value for each in container.env}}
