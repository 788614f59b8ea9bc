"""The runtimes of config/ as templates: each where its value says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hack.chart.template_text import Expressions
from trainer.cli.manifests import INITIALIZER_IMAGE, TRANSFORMERS_IMAGE
from trainer.cli.manifests import runtimes as shipped
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.discovery import Version

_RELEASED: Final = {
    "torch-distributed-with-cache": "dataCache.runtimes.torchDistributedWithCache",
    "torchtune-gemma-2b": "runtimes.torchtuneDistributed.gemma_2B",
    "torchtune-llama3.1-70b": "runtimes.torchtuneDistributed.llama3_1_70B",
    "torchtune-llama3.1-8b": "runtimes.torchtuneDistributed.llama3_1_8B",
    "torchtune-llama3.2-1b": "runtimes.torchtuneDistributed.llama3_2_1B",
    "torchtune-llama3.2-3b": "runtimes.torchtuneDistributed.llama3_2_3B",
    "torchtune-mistral-7b": "runtimes.torchtuneDistributed.mistral_7B",
    "torchtune-qwen2.5-1.5b": "runtimes.torchtuneDistributed.qwen2_5_1_5B",
}
"""Where the released chart has them, unless it follows from the name."""
_IMAGES: Final = {
    INITIALIZER_IMAGE: ".Values.runtimes.initializer.image",
    TRANSFORMERS_IMAGE: ".Values.runtimes.transformersDistributed.image",
} | {
    f"ghcr.io/kubeflow/trainer/{repository}:v2.3.0": f".Values.runtimes.{value}.image"
    for repository, value in {
        "deepspeed-runtime": "deepspeedDistributed",
        "mlx-runtime": "mlxDistributed",
        "torchtune-trainer": "torchtuneDistributed",
        "xgboost-runtime": "xgboostDistributed",
    }.items()
}


def value_of(name: str) -> str:
    """Where the values of a runtime are, such as runtimes.torchDistributed."""
    camel = re.sub(r"-(.)", lambda match: match[1].upper(), name)
    return _RELEASED.get(name, f"runtimes.{camel}")


def runtimes(version: Version, expressions: Expressions) -> str:
    """Those of a version that the values choose, as documents of YAML."""
    return "".join(_chosen(obj, expressions) for obj in shipped(version))


def _chosen(obj: Object, expressions: Expressions) -> str:
    value = value_of(name_of(obj))
    enabled = f".Values.{value}.enabled"
    condition = f"or .Values.runtimes.defaultEnabled {enabled}" if value.startswith("runtimes.") else enabled
    expressions.extend(obj["metadata"].setdefault("labels", {}), ".Values.runtimes.commonLabels")
    for container in _containers(obj):
        if (image := _IMAGES.get(container["image"])) is not None:
            parameters = f'(dict "image" {image} "version" .Chart.AppVersion)'
            container["image"] = expressions.value(f'{{{{ include "kubeflow-trainer.image" {parameters} }}}}')
    return f"{{{{- if {condition} }}}}\n---\n{expressions.text(obj)}{{{{- end }}}}\n"


def _containers(obj: Object) -> Iterator[Object]:
    for job in obj["spec"]["template"]["spec"]["replicatedJobs"]:
        yield from job["template"]["spec"]["template"]["spec"]["containers"]
