"""The command line of `tune run`: torchrun's options, a recipe, its configuration, and overrides of that.

tune run [--option ...] <recipe> --config <configuration> [key=value | ~key ...]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainer.api.trainjob import TrainJob
from trainer.framework import BuildError, RuntimeInfo, nodes_field, stated_processes
from trainer.kube.field_errors import FieldError, invalid, required
from trainer.plugins.torch.processes import processes_per_node
from trainer.plugins.torch.torchtune_recipes import (
    MODELS,
    SINGLE_DEVICE_RECIPES,
    VARIANTS,
    DeviceScope,
    Method,
    find_variant,
    model_named,
    model_of,
    variant_of,
)

_FLAGS = frozenset({"--standalone", "-m", "--module", "--no-python", "--run-path", "--virtual-local-rank"})
"""Options of torchrun without a value."""


@dataclass(frozen=True, slots=True)
class TuneRun:
    """The words after `tune run`."""

    options: tuple[tuple[str, ...], ...] = ()
    """Options of torchrun, each one word or a word and its value."""
    recipe: str | None = None
    config: str | None = None
    overrides: tuple[str, ...] = ()
    """Changes of the configuration: `key=value`, or `~key` to remove one."""
    rest: tuple[str, ...] = ()
    """All other words, which torchtune refuses."""

    @property
    def settings(self) -> dict[str, str]:
        """Values of the overrides by key; the last one counts, as in torchtune."""
        pairs = (override.split("=", 1) for override in self.overrides if "=" in override)
        return {key.strip(): value.strip() for key, value in pairs}


def is_tune_run(command: Sequence[str], args: Sequence[str]) -> bool:
    """Whether a container runs torchtune, wherever its command is installed."""
    if not command or command[0].rpartition("/")[2] != "tune":
        return False
    return [*command, *args][1:2] == ["run"]


def parse(words: Sequence[str]) -> TuneRun:
    """Read the words after `tune run`."""
    options: list[tuple[str, ...]] = []
    overrides: list[str] = []
    rest: list[str] = []
    recipe = config = None
    remaining = deque(words)
    while remaining:
        word = remaining.popleft()
        if word == "--config" and remaining:
            config = remaining.popleft()
        elif word.startswith("--config="):
            config = word.removeprefix("--config=")
        elif word == "--config":
            rest.append(word)
        elif recipe is None and word.startswith("-"):
            has_value = "=" not in word and option_of(word) not in _FLAGS and remaining
            options.append((word, remaining.popleft()) if has_value else (word,))
        elif is_override(word):
            overrides.append(word)
        elif recipe is None and "=" not in word:
            recipe = word
        else:
            rest.append(word)
    return TuneRun(tuple(options), recipe, config, tuple(overrides), tuple(rest))


def is_override(word: str) -> bool:
    """Whether a word changes the configuration; torchtune refuses a second `=`."""
    return not word.startswith("-") and (word.startswith("~") or word.count("=") == 1)


def key_of(word: str) -> str:
    """The key of an override: `output_dir` for `output_dir=/tmp` and for `~output_dir`."""
    return word.removeprefix("~").partition("=")[0].strip()


def option_of(word: str) -> str:
    """Name of an option of torchrun, which has two spellings: `--nproc-per-node` for `--nproc_per_node=2`."""
    return word.partition("=")[0].replace("_", "-")


class Choice(NamedTuple):
    """Recipe and configuration of `tune run`."""

    recipe: str
    config: str


def choose(info: RuntimeInfo, train_job: TrainJob, given: TuneRun, blueprint: TuneRun, path: str) -> Choice:
    """Choose recipe and configuration, or raise a BuildError where torchtune has nothing that fits.

    `given` is the command of the container, whose path is for messages, `blueprint` that of the runtime.
    """
    stated, known = (given.recipe, given.config), (blueprint.recipe, blueprint.config)
    if stated != (None, None) and not (stated == known and variant_of(*known)):
        return _stated(info, train_job, given, path)
    model = _model(train_job, blueprint)
    method, devices = _method(given), _devices(info, train_job)
    variant = find_variant(model, method, devices)
    if variant is None:
        raise BuildError(*_refusals(info, train_job, model, method))
    return Choice(variant.recipe, variant.config_of(model))


def _stated(info: RuntimeInfo, train_job: TrainJob, given: TuneRun, path: str) -> Choice:
    """The recipe and configuration that runtime or TrainJob name; both must exist and fit the devices."""
    if given.recipe is None:
        rule = f"names --config {given.config} and no recipe: write tune run <recipe> --config {given.config}"
        raise BuildError(required(path, rule))
    if given.config is None:
        raise BuildError(required(path, f"names no configuration: write tune run {given.recipe} --config <config>"))
    devices = _devices(info, train_job)
    if given.recipe in SINGLE_DEVICE_RECIPES and devices is not DeviceScope.ONE:
        remedy = "set numNodes and numProcPerNode to 1, or choose another recipe"
        rule = f"trains on one device, and there are {devices}: {remedy}"
        raise BuildError(invalid(path, given.recipe, rule))
    return Choice(given.recipe, given.config)


def _model(train_job: TrainJob, blueprint: TuneRun) -> str:
    """The model of the runtime: that of its configuration, else that of its name, if torchtune has it."""
    name = train_job.spec.runtime_ref.name
    model = model_of(blueprint.config) if blueprint.config is not None else None
    model = model or model_named(name)
    if model is not None:
        return model
    source = f"its --config {blueprint.config}" if blueprint.config is not None else "its name, without a --config,"
    rule = f"must have a pretrained model that torchtune supports; {source} is none of {', '.join(MODELS)}"
    raise BuildError(invalid("spec.runtimeRef.name", name, rule))


def _method(given: TuneRun) -> Method:
    variant = variant_of(given.recipe, given.config)
    method = variant.method if variant else Method.FULL
    settings = given.settings
    is_dora = _is_true(settings.get("model.use_dora", ""))
    if _is_true(settings.get("model.quantize_base", str(method is Method.QLORA))) and not is_dora:
        return Method.QLORA
    # DoRA, quantized or not, is an override of the configuration for LoRA.
    is_lora = is_dora or any(key.startswith("model.lora_") for key in settings)
    return Method.LORA if is_lora or method is not Method.FULL else Method.FULL


def _is_true(value: str) -> bool:
    return value.strip().casefold() == "true"


def _devices(info: RuntimeInfo, train_job: TrainJob) -> DeviceScope:
    if info.trainer.count > 1:
        return DeviceScope.NODES
    processes = processes_per_node(info, train_job)
    is_one = processes == "1" or (processes in {"auto", "gpu"} and info.devices_of(info.main_container).count == 1)
    return DeviceScope.ONE if is_one else DeviceScope.SEVERAL


def _refusals(info: RuntimeInfo, train_job: TrainJob, model: str, method: Method) -> Iterator[FieldError]:
    """The error for a missing variant, at the field that can change it."""
    devices, variants = _devices(info, train_job), VARIANTS[model]
    if devices is DeviceScope.NODES:
        yield invalid(nodes_field(info, train_job), info.trainer.count, _nodes_rule(model, method))
        return
    elsewhere = [
        variant for variant in variants if variant.method is method and variant.devices is not DeviceScope.NODES
    ]
    if not elsewhere:
        present = ", ".join(f"{variant.method} on {variant.devices}" for variant in variants)
        rule = f"{method} is not supported for {model}: torchtune has {present}"
        yield invalid("spec.runtimeRef.name", train_job.spec.runtime_ref.name, rule)
    elif devices is DeviceScope.SEVERAL:
        reason = f"for {model} with {method}, which torchtune has for one device only"
        yield _misfit(
            info, train_job, f"must be 1, or auto on a node with 1 GPU, {reason}", f"must have 1 GPU {reason}"
        )
    else:
        reason = f"for {model} with {method}, which torchtune has for several devices only"
        yield _misfit(info, train_job, f"must be 2 or more {reason}", f"must have 2 GPUs or more {reason}")


def _nodes_rule(model: str, method: Method) -> str:
    if method is not Method.FULL:
        return f"must be 1: torchtune does not support {method} on several nodes"
    able = [other for other in MODELS if find_variant(other, Method.FULL, DeviceScope.NODES)]
    return f"must be 1 for {model}: torchtune trains only {', '.join(able)} on several nodes"


def _misfit(info: RuntimeInfo, train_job: TrainJob, of_processes: str, of_gpus: str) -> FieldError:
    """The error for a wrong number of devices, at the field of the processes or the GPUs."""
    own, policy = stated_processes(train_job), info.ml_policy.torch
    stated = own if own is not None else policy and policy.num_proc_per_node
    if stated not in {None, "auto", "gpu"}:
        path = (
            "spec.trainer.numProcPerNode" if own is not None else f"{info.runtime} spec.mlPolicy.torch.numProcPerNode"
        )
        return invalid(path, stated, of_processes)
    return invalid("spec.trainer.resourcesPerNode", info.main_container.resources, of_gpus)
