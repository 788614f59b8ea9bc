"""torchtune: which recipe, configuration and arguments `tune run` gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.api.checkpoints import CHECKPOINTS
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.runtime_info import Container, RuntimeInfo
from trainer.plugins.torch import torchtune
from trainer.plugins.torch.plugin import Torch
from trainer.plugins.torch.torchtune_recipes import MODELS, DeviceScope, Method, find_variant, model_of

UID = "5c2ee6f0-2f3a-4a5c-9b5e-0d4f5a0f6a11"
HEAD = "--rdzv_endpoint=demo-node-0-0.demo:29400"
PATHS = ["output_dir=/out", "tokenizer.path=/model/tokenizer.model", "checkpointer.checkpoint_dir=/model"]
FULL = ["tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "--config"]
TUNE = {"command": ["tune", "run"]}
LORA, QLORA, DORA = "model.lora_attn_modules=[q_proj,v_proj]", "model.quantize_base=True", "model.use_dora=True"
BLUEPRINT = "ClusterTrainingRuntime/blueprint"
COMMAND = f"{BLUEPRINT} spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[trainer].command"


def llama(config: str = "llama3_2/1B_full") -> list[str]:
    """The command of a runtime as Kubeflow Trainer ships it."""
    return [*FULL, config, "dataset=torchtune.datasets.instruct_dataset", "dataset.source=parquet", *PATHS]


def gpus(number: int) -> dict[str, Any]:
    return {"limits": {"nvidia.com/gpu": number}}


def extracted(
    trainer: Any = None,
    command: list[str] | None = None,
    *,
    args: list[str] | None = None,
    policy: Any = None,
    resources: Any = None,
    spec: Any = None,
) -> tuple[RuntimeInfo, TrainJob]:
    """RuntimeInfo before the plugin; the runtime has two GPUs on one node."""
    container = {
        "name": "trainer",
        "image": "runtime-image",
        "command": llama() if command is None else command,
        "args": args or [],
        "resources": gpus(2) if resources is None else resources,
    }
    blueprint = runtime(replicated_job("node", container), policy={"torch": {}} | (policy or {}))
    job = train_job(**({"trainer": trainer} if trainer is not None else {}), **(spec or {}))
    return extract(job, blueprint), job


def completed(*arguments: Any, **options: Any) -> Container:
    """The training container after the plugin."""
    info, job = extracted(*arguments, **options)
    torchtune.complete(info, job)
    return info.main_container


def errors(*arguments: Any, **options: Any) -> list[str]:
    info, job = extracted(*arguments, **options)
    return [str(error) for error in torchtune.validate(info, job)]


def choice(container: Container) -> tuple[str, str]:
    """Recipe and configuration."""
    position = container.command.index("--config")
    return container.command[position - 1], container.command[position + 1]


FULL_ONE, FULL_SEVERAL = "full_finetune_single_device", "full_finetune_distributed"
LORA_ONE, LORA_SEVERAL = "lora_finetune_single_device", "lora_finetune_distributed"


@pytest.mark.parametrize(
    ("trainer", "config", "recipe", "suffix"),
    [
        pytest.param(
            {"resourcesPerNode": gpus(1), "args": [QLORA, LORA]},
            "llama3_2/1B_full", LORA_ONE, "_qlora_single_device", id="one-device-qlora",
        ),
        pytest.param(
            {"resourcesPerNode": gpus(1), "args": [LORA]},
            "llama3_2/1B_full", LORA_ONE, "_lora_single_device", id="one-device-lora",
        ),
        pytest.param(
            {"resourcesPerNode": gpus(1)},
            "llama3_2/1B_full", FULL_ONE, "_full_single_device", id="one-device-full",
        ),
        pytest.param({"args": [QLORA, LORA]}, "llama2/7B_full", LORA_SEVERAL, "_qlora", id="several-devices-qlora"),
        pytest.param({}, "llama3_2/1B_full", FULL_SEVERAL, "_full", id="several-devices-full"),
        pytest.param({"numNodes": 2}, "llama3_3/70B_full", FULL_SEVERAL, "_full_multinode", id="several-nodes"),
        pytest.param({"numProcPerNode": 1}, "llama3_2/1B_full", FULL_ONE, "_full_single_device", id="one-process"),
        pytest.param(
            {"resourcesPerNode": gpus(0)},
            "llama3_2/1B_full", FULL_ONE, "_full_single_device", id="nothing-known-is-one-process",
        ),
        pytest.param(
            {"resourcesPerNode": gpus(1)}, "llama2/7B_full", FULL_ONE, "_full_low_memory", id="low-memory-on-one-device"
        ),
        pytest.param({"args": ["model.lora_rank=4"]}, "llama2/7B_full", LORA_SEVERAL, "_lora", id="any-lora-setting"),
        pytest.param({"args": ["epochs=3"]}, "llama2/7B_lora", LORA_SEVERAL, "_lora", id="runtime-with-lora"),
        pytest.param(
            {"args": [QLORA], "resourcesPerNode": gpus(1)},
            "gemma/7B_lora_single_device", LORA_ONE, "_qlora_single_device", id="runtime-for-one-device",
        ),
        pytest.param(TUNE, "llama2/7B_lora", FULL_SEVERAL, "_full", id="own-command-forgets-the-method"),
        pytest.param(
            {"command": ["/opt/conda/bin/tune", "run"]}, "llama2/7B_full", FULL_SEVERAL, "_full", id="command-with-path"
        ),
        pytest.param(
            {"command": ["tune"], "args": ["run", LORA]}, "llama2/7B_full", LORA_SEVERAL, "_lora", id="run-in-args"
        ),
    ],
)  # fmt: skip
def test_recipe(trainer: Any, config: str, recipe: str, suffix: str) -> None:
    """Recipe and configuration follow from the model of the runtime, the devices, and the method."""
    kind = "lora" if "lora" in config else "full"
    own = f"{kind}_finetune_{'single_device' if config.endswith('single_device') else 'distributed'}"

    found = choice(completed(trainer, ["tune", "run", own, "--config", config, *PATHS]))

    assert found == (recipe, (model_of(config) or "") + suffix)


@pytest.mark.parametrize(
    ("trainer", "command", "args"),
    [
        pytest.param(
            None,
            [
                *FULL,
                "llama3_2/1B_full",
                "dataset=torchtune.datasets.instruct_dataset",
                "dataset.source=parquet",
                *PATHS,
            ],
            [],
            id="runtime-alone",
        ),
        pytest.param(
            {"args": ["epochs=3", LORA]},
            ["tune", "run", HEAD, LORA_SEVERAL, "--config", "llama3_2/1B_lora", *llama()[6:]],
            ["epochs=3", LORA],
            id="args-come-after-those-of-the-runtime",
        ),
        pytest.param(
            {"resourcesPerNode": gpus(1)},
            ["tune", "run", FULL_ONE, "--config", "llama3_2/1B_full_single_device", *llama()[6:]],
            [],
            id="one-device-has-no-rendezvous",
        ),
        pytest.param(
            {"command": ["tune", "run", "--log_dir", "/logs", "my/recipe.py", "--config", "my.yaml", "epochs=2"]},
            [
                *["tune", "run", HEAD, "--log_dir", "/logs", "my/recipe.py", "--config", "my.yaml", "epochs=2"],
                *llama()[6:],
            ],
            [],
            id="own-recipe",
        ),
    ],
)
def test_completion(trainer: Any, command: list[str], args: list[str]) -> None:
    """The command gets rendezvous, recipe, configuration and what the runtime manages; args stay what they are."""
    container = completed(trainer)

    # The runtime of Kubeflow Trainer meets at localhost; our first node takes its place.
    assert container.command == [HEAD if word.startswith("--rdzv") else word for word in command]
    assert container.args == args


def test_words_in_args_of_the_runtime() -> None:
    """A runtime may have recipe and overrides in its args, which those of a TrainJob replace, but for its paths."""
    words = [FULL_SEVERAL, "--config", "llama2/7B_full", "epochs=1", *PATHS]

    alone = completed(None, ["tune", "run"], args=words)
    own = completed({"args": [LORA]}, ["tune", "run"], args=words)

    assert alone.command == ["tune", "run", HEAD, FULL_SEVERAL, "--config", "llama2/7B_full"]
    assert alone.args == ["epochs=1", *PATHS]
    assert own.command == ["tune", "run", HEAD, LORA_SEVERAL, "--config", "llama2/7B_lora", *PATHS]
    assert own.args == [LORA]


@pytest.mark.parametrize(
    ("recipe", "config"),
    [
        pytest.param("qat_distributed", "llama2/7B_qat_full", id="another-recipe"),
        pytest.param(LORA_SEVERAL, "llama3/8B_dora", id="another-configuration"),
    ],
)
def test_recipes_outside_the_table(recipe: str, config: str) -> None:
    """A runtime with a recipe that is not for us to choose keeps it."""
    assert choice(completed({"args": ["epochs=2"]}, ["tune", "run", recipe, "--config", config])) == (recipe, config)


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param(None, id="runtime-alone"),
        pytest.param({**TUNE, "args": ["dataset.source=json"]}, id="own-command"),
    ],
)
def test_completing_twice(trainer: Any) -> None:
    """The second time changes nothing, and the TrainJob is never changed."""
    info, job = extracted(trainer)
    before = job.to_object()

    torchtune.complete(info, job)
    once = (list(info.main_container.command), list(info.main_container.args))
    torchtune.complete(info, job)

    assert (info.main_container.command, info.main_container.args) == once
    assert job.to_object() == before


def test_plugin_completes_and_refuses() -> None:
    """The torch plugin is where this happens, beside the variables that torchrun reads."""
    info, job = extracted({"args": ["output_dir=/"]})
    found = [str(error) for error in Torch().validate(info, None, job)]
    info, job = extracted({"args": [LORA]})
    Torch().enforce_ml_policy(info, job)

    assert found == errors({"args": ["output_dir=/"]})
    assert choice(info.main_container) == (LORA_SEVERAL, "llama3_2/1B_lora")
    assert "PET_NPROC_PER_NODE" in {variable["name"] for variable in info.main_container.env}


OUTPUT = {"name": "output", "mountPath": "/out"}
CLAIM = [{"name": "output", "persistentVolumeClaim": {"claimName": "output"}}]
SCRATCH: list[Any] = [{"name": "output", "emptyDir": {}}]
BESIDE = f"/out/.checkpoints/demo-{UID}"


@pytest.mark.parametrize(
    ("container", "volumes", "annotations", "directory"),
    [
        pytest.param({"volumeMounts": [OUTPUT]}, CLAIM, {}, BESIDE, id="claim"),
        pytest.param({"volumeMounts": [OUTPUT]}, [], {}, BESIDE, id="claim-that-the-jobset-makes"),
        pytest.param({"volumeMounts": [OUTPUT | {"mountPath": "/"}]}, CLAIM, {}, BESIDE, id="above-the-output"),
        pytest.param({"volumeMounts": [OUTPUT]}, SCRATCH, {}, None, id="goes-with-the-pod"),
        pytest.param({"volumeMounts": [OUTPUT | {"readOnly": True}]}, CLAIM, {}, None, id="read-only"),
        pytest.param({"volumeMounts": [OUTPUT | {"mountPath": "/outer"}]}, CLAIM, {}, None, id="elsewhere"),
        pytest.param({"volumeMounts": [OUTPUT]}, CLAIM, {CHECKPOINTS: "data"}, None, id="claim-for-checkpoints"),
        pytest.param({"volumeMounts": [OUTPUT]}, CLAIM, {CHECKPOINTS: ""}, None, id="no-checkpoints"),
        pytest.param(
            {"volumeMounts": [OUTPUT], "env": [{"name": "TRAINER_CHECKPOINT_DIR", "value": "/own"}]},
            *(CLAIM, {}, "/own"),
            id="own",
        ),
        pytest.param({"volumeMounts": [OUTPUT], "command": ["torchrun"]}, CLAIM, {}, None, id="other-program"),
    ],
)
def test_directory_for_checkpoints(
    container: Any, volumes: list[Any], annotations: dict[str, str], directory: str | None
) -> None:
    """Checkpoints are beside the output where that is on a claim and no annotation says where they are."""
    trainer = {"name": "trainer", "image": "i", "command": llama(), "resources": gpus(2), **container}
    replicated = replicated_job("node", trainer)
    replicated["template"]["spec"]["template"]["spec"]["volumes"] = volumes
    job = train_job()
    job.metadata.name, job.metadata.uid, job.metadata.annotations = "demo", UID, annotations
    info = extract(job, runtime(replicated, policy={"torch": {}}))
    Torch().enforce_ml_policy(info, job)
    variables = {variable["name"]: variable.get("value") for variable in info.main_container.env}
    assert variables.get("TRAINER_CHECKPOINT_DIR") == directory


def test_name_counts_without_a_configuration() -> None:
    """A runtime whose command says nothing about the model is known by its name; a configuration wins over the name."""
    spec = {"runtimeRef": {"name": "torchtune-gemma2-9b"}}

    assert choice(completed(None, ["tune", "run"], spec=spec)) == (FULL_SEVERAL, "gemma2/9B_full")
    assert choice(completed(None, spec=spec)) == (FULL_SEVERAL, "llama3_2/1B_full")


def test_models() -> None:
    """Every model of the table can be recognised by its configurations, and has at least one variant."""
    for model in MODELS:
        found = [find_variant(model, method, devices) for method in Method for devices in DeviceScope]
        variants = [variant for variant in found if variant is not None]
        assert variants
        assert {model_of(variant.config_of(model)) for variant in variants} == {model}


RULE = (
    "must be key=value, or ~key, for the configuration of the recipe; to choose a recipe, "
    "let spec.trainer.command be tune run <recipe> --config <config>"
)


@pytest.mark.parametrize(
    ("trainer", "config", "expected"),
    [
        pytest.param(None, "llama3_2/1B_full", [], id="fine"),
        pytest.param(
            {"command": ["tune", "run", "--config"]},
            "llama3_2/1B_full",
            [f'spec.trainer.command: Invalid value: "--config": {RULE}'],
            id="config-without-a-name",
        ),
        pytest.param(
            {"numNodes": 2},
            "llama3_2/1B_full",
            [
                (
                    "spec.trainer.numNodes: Invalid value: 2: must be 1 for llama3_2/1B: "
                    "torchtune trains only llama3_3/70B on several nodes"
                )
            ],
            id="several-nodes",
        ),
        pytest.param(
            {"numNodes": 2, "args": [LORA]},
            "llama3_3/70B_full",
            ["spec.trainer.numNodes: Invalid value: 2: must be 1: torchtune does not support LoRA on several nodes"],
            id="several-nodes-lora",
        ),
        pytest.param(
            {"args": [QLORA]},
            "qwen2_5/1.5B_full",
            [
                (
                    'spec.runtimeRef.name: Invalid value: "blueprint": QLoRA is not supported for qwen2_5/1.5B: '
                    "torchtune has full fine-tuning on one device, full fine-tuning on several devices, "
                    "LoRA on one device, LoRA on several devices"
                )
            ],
            id="no-qlora-at-all",
        ),
        pytest.param(
            {"args": [QLORA]},
            "llama3_2/1B_full",
            [
                (
                    'spec.trainer.resourcesPerNode: Invalid value: {"limits":{"nvidia.com/gpu":2}}: '
                    "must have 1 GPU for llama3_2/1B with QLoRA, which torchtune has for one device only"
                )
            ],
            id="qlora-on-several-gpus",
        ),
        pytest.param(
            {"resourcesPerNode": gpus(1)},
            "gemma/7B_full",
            [
                (
                    'spec.trainer.resourcesPerNode: Invalid value: {"limits":{"nvidia.com/gpu":1}}: must have 2 GPUs '
                    "or more for gemma/7B with full fine-tuning, which torchtune has for several devices only"
                )
            ],
            id="full-on-one-gpu",
        ),
        pytest.param(
            {"args": ["epochs=1", "output_dir=/tmp", "~tokenizer.merges_file"]},
            "llama3_2/1B_full",
            [
                (
                    'spec.trainer.args[1]: Invalid value: "output_dir=/tmp": must not set output_dir: '
                    "the runtime manages it"
                ),
                (
                    'spec.trainer.args[2]: Invalid value: "~tokenizer.merges_file": must not set '
                    "tokenizer.merges_file: the runtime manages it"
                ),
            ],
            id="immutable-in-args",
        ),
        pytest.param(
            {"args": ["--nproc_per_node=4"]},
            "llama3_2/1B_full",
            ["spec.trainer.args[0]: Forbidden: must not set --nproc-per-node, which the torch plugin sets; remove it"],
            id="options-of-the-plugin",
        ),
        pytest.param(
            {"command": ["tune", "run", "--rdzv-endpoint", "x:1"]},
            "llama3_2/1B_full",
            ["spec.trainer.command: Forbidden: must not set --rdzv-endpoint, which the torch plugin sets; remove it"],
            id="rendezvous-of-the-plugin",
        ),
        pytest.param(
            {"args": ["--max-restarts=1", "epochs", "a=b=c", "batch_size=2"]},
            "llama3_2/1B_full",
            [
                f'spec.trainer.args[0]: Invalid value: "--max-restarts=1": {RULE}',
                f'spec.trainer.args[1]: Invalid value: "epochs": {RULE}',
                f'spec.trainer.args[2]: Invalid value: "a=b=c": {RULE}',
            ],
            id="not-an-override",
        ),
        pytest.param(
            {"command": ["tune", "run", "mine.py"]},
            "llama3_2/1B_full",
            ["spec.trainer.command: Required value: names no configuration: write tune run mine.py --config <config>"],
            id="recipe-without-configuration",
        ),
        pytest.param(
            {**TUNE, "args": ["--config", "llama2/7B_full"]},
            "llama3_2/1B_full",
            [
                (
                    "spec.trainer.command: Required value: names --config llama2/7B_full and no recipe: "
                    "write tune run <recipe> --config llama2/7B_full"
                )
            ],
            id="configuration-without-recipe",
        ),
        pytest.param(
            {"command": ["tune", "run", LORA_ONE, "--config", "llama2/7B_lora_single_device"]},
            "llama3_2/1B_full",
            [
                (
                    f'spec.trainer.command: Invalid value: "{LORA_ONE}": trains on one device, and there are '
                    "several devices: set numNodes and numProcPerNode to 1, or choose another recipe"
                )
            ],
            id="own-recipe-for-one-device-on-several",
        ),
        pytest.param(
            {"command": ["tune", "run", "--log_dir", "/logs"], "numProcPerNode": 1},
            "llama3_2/1B_full",
            [
                (
                    "spec.trainer.command: Forbidden: must not set --log-dir, an option of torchrun: "
                    f"{FULL_ONE} trains on one device, without it"
                )
            ],
            id="option-of-torchrun-on-one-device",
        ),
    ],
)
def test_refusals(trainer: Any, config: str, expected: list[str]) -> None:
    """What torchtune does not have, and words that are not the TrainJob's to say, are refused where they are."""
    assert errors(trainer, llama(config)) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(
            {"command": llama("gemma/7B_full"), "policy": {"torch": {"numProcPerNode": 1}}},
            f"{BLUEPRINT} spec.mlPolicy.torch.numProcPerNode: Invalid value: ",
            id="one-process",
        ),
        pytest.param(
            {"policy": {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 1}}}},
            f"{BLUEPRINT} spec.mlPolicy.torch.elasticPolicy: Forbidden: the recipes of torchtune cannot continue when "
            "the number of nodes changes; set spec.mlPolicy.numNodes",
            id="elastic",
        ),
        pytest.param(
            {"command": ["tune", "run", FULL_ONE, "--config", "mine.yaml"]},
            f'{COMMAND}: Invalid value: "{FULL_ONE}": trains on one device',
            id="recipe-for-one-device",
        ),
        pytest.param(
            {"command": ["tune", "run"]},
            'spec.runtimeRef.name: Invalid value: "blueprint": must have a pretrained model that torchtune supports; '
            f"its name, without a --config, is none of {', '.join(MODELS)}",
            id="no-model",
        ),
        pytest.param(
            {"command": ["tune", "run", FULL_SEVERAL, "--config", "llama9/1B_full"], "spec": {"trainer": TUNE}},
            'spec.runtimeRef.name: Invalid value: "blueprint": must have a pretrained model that torchtune supports; '
            "its --config llama9/1B_full is none of code_llama2/7B, gemma/2B",
            id="unknown-model",
        ),
        pytest.param(
            {
                "spec": {
                    "podSpecOverrides": [
                        {
                            "targetJobs": [{"name": "node"}],
                            "containers": [{"name": "trainer", "args": ["epochs=1", "output_dir=/tmp"]}],
                        }
                    ]
                }
            },
            'spec.podSpecOverrides[0].containers[0].args[1]: Invalid value: "output_dir=/tmp": '
            "must not set output_dir: the runtime manages it",
            id="override-of-a-pod",
        ),
    ],
)
def test_refusals_of_runtimes(options: Any, expected: str) -> None:
    """What comes from the runtime is refused there."""
    (error,) = errors(**options)
    assert error.startswith(expected)


@pytest.mark.parametrize(("target", "refused"), [pytest.param("side", False), pytest.param("node", True)])
def test_words_of_pods_that_do_not_train(target: str, refused: bool) -> None:
    """What an override gives a container of the same name in another replicated Job is none of torchtune's."""
    args = {"name": "trainer", "args": ["output_dir=/tmp"]}
    job = train_job(podSpecOverrides=[{"targetJobs": [{"name": target}], "containers": [args]}])
    trainer = {"name": "trainer", "image": "i", "command": llama(), "resources": gpus(2)}
    blueprint = runtime(replicated_job("side"), replicated_job("node", trainer), policy={"torch": {}})
    assert bool(list(torchtune.validate(extract(job, blueprint), job))) is refused
