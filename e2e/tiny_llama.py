"""Models of torchtune on a laptop: tiny ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_STAND_INS = Path(__file__).parent / "stand_ins"
_RUNTIME = Path(__file__).parents[1] / "config" / "v1alpha1" / "runtimes" / "torchtune_llama3_2_1b.yaml"
_DATASET = _STAND_INS / "tiny-llama" / "dataset_initializer.py"
_ENVIRONMENT = {"PYTHONPATH": "/stand-ins", "HF_HUB_OFFLINE": "1", "HF_HOME": "/workspace/.cache"}

LLAMA2 = _STAND_INS / "tiny-llama"
"""Scripts that make a tiny Llama 2 and its data."""
CPU = ["device=cpu", "dtype=fp32", "batch_size=2", "gradient_accumulation_steps=1"]
TINY = [
    *("model.vocab_size=300", "model.num_layers=2", "model.num_heads=2", "model.num_kv_heads=2"),
    *("model.embed_dim=32", "model.intermediate_dim=64", "model.max_seq_len=256"),
    *CPU,
]
"""Shrinks the model to that of the stand-in; its 16 rows of data make 8 batches."""


def torchtune(namespace: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """The runtime as a TrainingRuntime of a namespace, or in its own kind, and the scripts that its pods mount.

    In a namespace its initializers fetch nothing: a dev cluster does not reach the Hub, from which the SDK takes all.
    """
    files = [_DATASET, *(_STAND_INS / "tiny-llama3").glob("*.py")]
    data = {path.name: path.read_text() for path in files}
    metadata = {"name": "stand-ins", "namespace": namespace or "default"}
    scripts = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    runtime: dict[str, Any] = yaml.safe_load(_RUNTIME.read_text())
    if namespace:
        runtime["kind"] = "TrainingRuntime"
        runtime["metadata"]["namespace"] = namespace
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        if job["name"] != "node" and not namespace:
            continue
        pod = job["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "stand-ins", "configMap": {"name": "stand-ins"}}]
        (container,) = pod["containers"]
        container["volumeMounts"].append({"name": "stand-ins", "mountPath": "/stand-ins"})
        if container["name"] == "node":
            container["env"] = [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()]
        else:
            container["command"] = ["python", f"/stand-ins/{container['name'].replace('-', '_')}.py"]
    return runtime, scripts
