"""The real torchtune fine-tunes a tiny Llama 2 with the shipped runtimes, in the recipe that the torch plugin chooses.

Runtimes and TrainJobs are those of a user but for what has no place on a laptop: the initializers fetch a model with
random weights and a few rows of data from a directory of this machine, and arguments of the TrainJob shrink the model
and let it train on CPUs.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.kep_examples import advertise_gpus
from e2e.prerequisites import needs_module
from e2e.tiny_llama import LLAMA2, TINY
from hack.torchtune_models import MODELS
from trainer.plugins.torch.torchtune_recipes import SINGLE_DEVICE_RECIPES, VARIANTS, DeviceScope

pytestmark = [
    pytest.mark.timeout(300),
    needs_module("torchtune"),
]

CONFIG = Path(__file__).parents[1] / "config" / "runtimes"
DIRECTORY = "/stand-ins"
CONFIGURATIONS = {
    variant.config_of(model.name): model
    for model in MODELS
    for variant in model.on_one_node
    if variant.devices is DeviceScope.ONE or model.gpus > 2
}
"""The configurations of the runtimes, each with its model; those for several devices have the same models."""
TIMEOUT = 180.0
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HF_HOME": "/workspace/dataset/.cache", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories `dataset` and `llama2`, which the initializers fetch."""
    directory = tmp_path_factory.mktemp("sources")
    for script, target in (
        (LLAMA2 / "dataset_initializer.py", directory / "dataset"),
        (LLAMA2 / "make_model.py", directory / "llama2"),
    ):
        environment = {**os.environ, "TRANSFER_PATH": str(target)}
        command = [sys.executable, str(script), str(target)]
        subprocess.run(command, env=environment, capture_output=True, timeout=100, check=True)
    return directory


@pytest.fixture
def tuning(cluster: Cluster) -> Cluster:
    """A namespace with what lets torchtune do without GPUs, on a node that says it has some."""
    cluster.require_local("torchtune")
    cluster.require_pod_networks()
    advertise_gpus(cluster)
    data = {"sitecustomize.py": (LLAMA2 / "sitecustomize.py").read_text()}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stand-ins"}, "data": data})
    return cluster


def test_table_is_that_of_torchtune() -> None:
    """What the plugin chooses from is what torchtune has, but for DoRA, and it knows which recipes take no torchrun."""
    spec = find_spec("torchtune")
    assert spec is not None
    (package,) = spec.submodule_search_locations or []
    recipes = runpy.run_path(str(Path(package) / "_recipe_registry.py"))["_ALL_RECIPES"]
    configs = {(recipe.name, config.name) for recipe in recipes for config in recipe.configs}
    ours = {(each.recipe, each.config_of(model)) for model, variants in VARIANTS.items() for each in variants}
    names = {recipe for recipe, _ in ours}

    assert ours == {
        (recipe, config) for recipe, config in configs if recipe in names and not re.search("_q?dora", config)
    }
    assert {recipe.name for recipe in recipes if not recipe.supports_distributed} == SINGLE_DEVICE_RECIPES


def test_sizes_are_those_of_torchtune() -> None:
    """The memory in the reference follows from the parameters that the models of the configurations have."""
    result = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "torchtune_sizes.py"), *CONFIGURATIONS],
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    for configuration, sizes in json.loads(result.stdout).items():
        model = CONFIGURATIONS[configuration]
        stated = {"parameters": model.parameters, "quantized": model.quantized, "adapters": model.adapters}
        assert {name: size / 1e6 for name, size in sizes.items()} == pytest.approx(
            {name: stated[name] for name in sizes}, rel=0.02
        )


def test_lora_on_one_device(tuning: Cluster, sources: Path, tmp_path: Path) -> None:
    """Initializers, LoRA on one device, export: the arguments reach the recipe, and the exporter finds its adapters."""
    spec = fetched(sources)
    spec["modelConfig"]["output"] = {"storageUri": f"file://{tmp_path}/trained"}
    run(
        tuning,
        "torch-tune-llama-7b-export",
        {"args": ["model=torchtune.models.llama2.lora_llama2", "model.lora_rank=4", *TINY], **gpus(1)},
        **spec,
    )

    log = tuning.kubectl("logs", "job/tune-node-0", "-c", "trainer").stdout
    assert "Running LoRAFinetuneRecipeSingleDevice with resolved config" in log
    assert "checkpoint_dir: /workspace/pre-trained-model" in log
    assert "Running with torchrun" not in log
    assert steps(log) == 8
    claims = {f"{name}-tune" for name in ("dataset-initializer", "model-initializer", "model-exporter")}
    assert {claim["metadata"]["name"] for claim in tuning.list("pvc")} == claims
    (epoch,) = (tmp_path / "trained").glob("epoch_*")
    assert json.loads((epoch / "adapter_config.json").read_text())["r"] == 4
    assert (epoch / "adapter_model.safetensors").is_file()
    for step, source in (("dataset", "dataset"), ("model", "llama2")):
        last = tuning.kubectl("logs", f"job/tune-{step}-initializer-0").stdout.splitlines()[-1]
        assert last.startswith(f"file://{sources}/{source} is in /workspace/{step}: ")


def test_all_weights_on_two_devices(tuning: Cluster, sources: Path) -> None:
    """The TrainJob's own `tune run` trains all weights in two processes, on the runtime's model and data."""
    run(
        tuning,
        "torch-tune-llama-7b",
        {
            "command": ["tune", "run"],
            "args": ["model=torchtune.models.llama2.llama2", "optimizer.fused=False", *TINY],
            "numProcPerNode": 2,
            **gpus(2),
        },
        environment={"PYTHONPATH": DIRECTORY},
        **fetched(sources),
    )

    log = tuning.kubectl("logs", "job/tune-node-0", "-c", "trainer").stdout
    assert "Running with torchrun" in log
    assert "Running FullFinetuneRecipeDistributed with resolved config" in log
    assert "_component_: torchtune.datasets.alpaca_dataset" in log
    assert "The full model checkpoint, including all weights and configurations, has been saved successfully." in log
    assert steps(log) == 4, "each of two processes takes half of the batches"


def steps(log: str) -> int:
    """How many steps the only epoch had, by the progress bar."""
    return max(int(step) for step in re.findall(r"1\|(\d+)\|Loss: \d", log))


def gpus(number: int) -> dict[str, Any]:
    return {"resourcesPerNode": {"limits": {"nvidia.com/gpu": number}}}


def fetched(sources: Path) -> dict[str, Any]:
    """What a TrainJob says about the directories that its initializers fetch."""
    return {
        "datasetConfig": {"storageUri": f"file://{sources}/dataset"},
        "modelConfig": {"input": {"storageUri": f"file://{sources}/llama2"}},
    }


def run(
    cluster: Cluster, name: str, trainer: dict[str, Any], environment: dict[str, str] | None = None, **spec: Any
) -> None:
    """Apply the runtime and a TrainJob called tune, which has to complete."""
    variables = [{"name": key, "value": value} for key, value in (ENVIRONMENT | (environment or {})).items()]
    job = {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": name},
            "trainer": trainer | {"env": variables},
            **spec,
        },
    }
    cluster.apply(with_stand_ins(name))
    cluster.apply(job)
    if cluster.wait_for_state("tune", "Complete", "Failed", timeout=TIMEOUT) == "Failed":
        logs = cluster.kubectl("logs", "job/tune-node-0", "--all-containers", check=False).stdout
        raise AssertionError(logs + cluster.kubectl("describe", "trainjob,pod").stdout)


def with_stand_ins(name: str) -> dict[str, Any]:
    """A shipped runtime in the namespace of the test, whose trainer finds what lets it do without GPUs."""
    runtime: dict[str, Any] = yaml.safe_load((CONFIG / f"{name.replace('-', '_')}.yaml").read_text())
    runtime["kind"] = "TrainingRuntime"
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        if job["name"] != "node":
            continue
        pod = job["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "stand-ins", "configMap": {"name": "stand-ins"}}]
        pod["containers"][0]["volumeMounts"].append({"name": "stand-ins", "mountPath": DIRECTORY})
    return runtime
