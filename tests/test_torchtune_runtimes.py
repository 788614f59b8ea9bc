"""The runtimes that `hack.generate_runtimes` writes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hack.generate_runtimes import file_of, runtime
from hack.torchtune_models import MEASURED, MODELS, Model
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework import Pipeline, StaticReader
from trainer.manager import built_in_plugins
from trainer.plugins.torch.torchtune_recipes import DeviceScope, Method, Variant

PIPELINE = Pipeline(built_in_plugins(StaticReader()))
BY_METHOD: dict[Method, dict[str, Any]] = {
    Method.FULL: {"command": ["tune", "run"]},
    Method.LORA: {"args": ["model.lora_attn_modules=[q_proj,v_proj]"]},
    Method.QLORA: {"args": ["model.quantize_base=True"]},
}
VARIANTS = [(model, variant) for model in MODELS for variant in model.on_one_node]


@pytest.mark.parametrize("model", [pytest.param(model, id=model.runtime) for model in MODELS])
def test_files(model: Model) -> None:
    """Each file is as it would be written: `python -m hack.generate_runtimes`."""
    assert file_of(model).read_text() == runtime(model)


def command(model: Model, **trainer: Any) -> list[str]:
    """What the nodes of a TrainJob run."""
    blueprint = ClusterTrainingRuntime.from_object(yaml.safe_load(runtime(model)))
    spec = {"runtimeRef": {"name": model.runtime}, "trainer": trainer}
    metadata = {"name": "tune", "namespace": "default", "uid": "u"}
    head = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob"}
    (built,) = PIPELINE.build(TrainJob.from_object(head | {"metadata": metadata, "spec": spec}), blueprint)
    node = built.object["spec"]["replicatedJobs"][-1]["template"]["spec"]["template"]["spec"]["containers"][0]
    return [*node["command"], *node.get("args", [])]


@pytest.mark.parametrize("model", [pytest.param(model, id=model.runtime) for model in MODELS])
def test_defaults(model: Model) -> None:
    """A TrainJob that says nothing gets the recipe of the runtime, and all of its paths."""
    words = command(model)
    config = words.index("--config")
    assert words[config - 1 : config + 2] == [model.variant.recipe, "--config", model.variant.config_of(model.name)]
    assert set(model.paths) <= set(words)


@pytest.mark.parametrize(
    ("model", "variant"), [pytest.param(*each, id=each[1].config_of(each[0].name)) for each in VARIANTS]
)
def test_variants(model: Model, variant: Variant) -> None:
    """Every recipe of torchtune for the model on one node can be had, with the paths of the runtime."""
    gpus = 1 if variant.devices is DeviceScope.ONE else 4
    trainer = {} if variant.method is model.method else BY_METHOD[variant.method]
    words = command(model, **trainer, resourcesPerNode={"limits": {"nvidia.com/gpu": gpus}})
    config = words.index("--config")
    assert words[config - 1 : config + 2] == [variant.recipe, "--config", variant.config_of(model.name)]
    assert set(model.paths) <= set(words)


def test_measurements() -> None:
    """What torchtune has measured is more than the state alone, and of a configuration that a runtime has."""
    states = {}
    for model, variant in VARIANTS:
        gpus = 1 if variant.devices is DeviceScope.ONE else 8
        states[variant.config_of(model.name)] = model.state(variant, gpus)
    for configuration, words in MEASURED.items():
        assert "offload" in words or states[configuration] < float(words.split(" GiB")[0])
