"""torchtune: `tune run` fine-tunes a large language model with a recipe and a configuration that fit the TrainJob.

The runtime says which model: `tune run lora_finetune_distributed --config llama2/7B_lora tokenizer.path=... ...`. The
TrainJob says how: with `args`, which are added to the overrides of the runtime, or with a command `tune run` of its
own, of which only the runtime's model remains, and what it says of tokenizer, checkpointer and dataset. From that
follow

* the method: QLoRA with `model.quantize_base=True` (not with `model.use_dora=True`), LoRA with `model.lora_...=`, else
  that of the runtime's recipe if its command is kept, else all weights are trained;
* the devices: one process is one device, so they are the nodes and the processes of a node;
* recipe and configuration, by model, method and devices: see `torchtune_recipes`;
* `--rdzv_endpoint`, the first node, but for recipes for one device: without an option `tune run` leaves torchrun out.

A training whose output is on a claim also gets a directory for checkpoints in it, so that a restart goes on after the
last epoch that is complete: see `trainer/checkpoints/frameworks/torchtune.py`.

A recipe and configuration that the TrainJob names itself, or that the runtime names and the table does not have, stay
as they are. The facts are those of Kubeflow Trainer 2.3, where the model comes from the name of the runtime.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from trainer.api.checkpoints import CHECKPOINTS, DIRECTORY_VARIABLE, directory_name
from trainer.api.trainjob import TrainJob
from trainer.framework import BuildError, RuntimeInfo, container_overrides, pod_spec_of, split_command
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import Object
from trainer.plugins.torch.torchtune_command import (
    Choice,
    TuneRun,
    choose,
    is_override,
    is_tune_run,
    key_of,
    option_of,
    parse,
)
from trainer.plugins.torch.torchtune_recipes import SINGLE_DEVICE_RECIPES

IMMUTABLE = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
"""Overrides of the runtime: paths where its volumes are mounted."""

MANAGED = frozenset({"checkpointer", "dataset", "tokenizer"})
"""Components whose parameters depend on the files that the runtime's initializers fetch."""

OWN_OPTIONS = frozenset(
    {
        "--nnodes",
        "--nproc-per-node",
        "--node-rank",
        "--master-addr",
        "--master-port",
        "--rdzv-backend",
        "--rdzv-endpoint",
        "--rdzv-id",
        "--standalone",
    }
)
"""Options of torchrun with a `PET_*` variable, which replaces the option of a runtime."""

_OVERRIDE_RULE = (
    "must be key=value, or ~key, for the configuration of the recipe; to choose a recipe, "
    "let spec.trainer.command be tune run <recipe> --config <config>"
)


def validate(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse a choice that torchtune lacks, and words that it does not understand, if the command is `tune run`."""
    container = info.main_container
    if not is_tune_run(container.command, container.args):
        return
    if info.ml_policy.torch is not None and info.ml_policy.torch.elastic_policy is not None:
        rule = "the recipes of torchtune cannot continue when the number of nodes changes; set spec.mlPolicy.numNodes"
        yield forbidden(f"{info.runtime} spec.mlPolicy.torch.elasticPolicy", rule)
    given = parse([*container.command, *container.args][2:])
    yield from _check_words(info, train_job, given)
    try:
        choice = choose(info, train_job, given, _blueprint(info), _command_path(info, train_job))
    except BuildError as error:
        yield from error.errors
    else:
        yield from _check_options(info, train_job, given, choice)


def complete(info: RuntimeInfo, train_job: TrainJob) -> None:
    """Complete the command of the training container if it is `tune run`; idempotent."""
    container = info.main_container
    if not is_tune_run(container.command, container.args):
        return
    words, blueprint = [*container.command, *container.args], _blueprint(info)
    given, own = parse(words[2:]), parse(container.command[2:])
    choice = choose(info, train_job, given, blueprint, _command_path(info, train_job))
    present = {key_of(override) for override in given.overrides}
    container.command = [
        *words[:2],
        *_options(info, given, choice),
        choice.recipe,
        "--config",
        choice.config,
        *own.overrides,
        *(override for override in blueprint.overrides if _stays(key_of(override), present)),
    ]
    container.args = list(given.overrides[len(own.overrides) :])


def checkpoint_variables(info: RuntimeInfo, train_job: TrainJob) -> list[Object]:
    """The directory of checkpoints of a completed `tune run`: beside its output, if no annotation says where they are.

    There is none unless the output is on a claim, so that it is there when the training starts again. The annotation
    decides also where it is empty.
    """
    container = info.main_container
    if not is_tune_run(container.command, container.args):
        return []
    annotations = (train_job.metadata.annotations or {}, info.train_job_annotations, info.annotations)
    has_own = any(variable["name"] == DIRECTORY_VARIABLE for variable in container.env)
    if has_own or any(CHECKPOINTS in each for each in annotations):
        return []
    output = parse([*container.command, *container.args][2:]).settings.get("output_dir", "")
    if not _is_on_claim(info, output):
        return []
    metadata = train_job.metadata
    path = posixpath.join(output, ".checkpoints", directory_name(metadata.name, metadata.uid))
    return [{"name": DIRECTORY_VARIABLE, "value": path}]


def _is_on_claim(info: RuntimeInfo, path: str) -> bool:
    """Whether a path of the training container can be written in a claim, which JobSet may have made for the pods."""
    mounts = [
        mount
        for mount in info.main_container.volume_mounts
        if PurePosixPath(path).is_relative_to(str(mount.get("mountPath")))
    ]
    if not mounts:
        return False
    mount = max(mounts, key=lambda each: len(str(each["mountPath"])))
    volume = next((each for each in info.trainer.volumes if each.get("name") == mount.get("name")), None)
    return not mount.get("readOnly") and (volume is None or "persistentVolumeClaim" in volume)


def _stays(key: str, present: set[str]) -> bool:
    """Whether an override of the runtime is added to the TrainJob's own command.

    The parameters of a component that the TrainJob exchanges are none of the new one.
    """
    component = key.partition(".")[0]
    return key not in present and (key in IMMUTABLE or (component in MANAGED and component not in present))


def _options(info: RuntimeInfo, given: TuneRun, choice: Choice) -> Iterator[str]:
    if choice.recipe in SINGLE_DEVICE_RECIPES:
        return
    yield f"--rdzv_endpoint={info.head_address()}:{info.rendezvous_port}"
    for option in given.options:
        if option_of(option[0]) not in OWN_OPTIONS:
            yield from option


def _blueprint(info: RuntimeInfo) -> TuneRun:
    """The runtime's own `tune run` command, which the TrainJob may have replaced; empty if it runs something else."""
    containers = pod_spec_of(info.job_of(info.trainer))["containers"]
    main = next(container for container in containers if container["name"] == info.main_container.name)
    command, args = main.get("command") or [], main.get("args") or []
    return parse([*command, *args][2:]) if is_tune_run(command, args) else TuneRun()


def _check_words(info: RuntimeInfo, train_job: TrainJob, given: TuneRun) -> Iterator[FieldError]:
    """Errors of words that a TrainJob must not set, and of words that torchtune does not understand."""
    rest = Counter(given.rest)
    for path, words in _own_words(info, train_job):
        for index, word in enumerate(words):
            field = f"{path}[{index}]" if path.endswith("args") else path
            if key_of(word) in IMMUTABLE and is_override(word):
                yield invalid(field, word, f"must not set {key_of(word)}: the runtime manages it")
            elif option_of(word) in OWN_OPTIONS:
                yield forbidden(field, f"must not set {option_of(word)}, which the torch plugin sets; remove it")
            elif rest[word]:
                yield invalid(field, word, _OVERRIDE_RULE)
            if rest[word]:
                rest[word] -= 1
    for word in rest.elements():
        if option_of(word) not in OWN_OPTIONS:
            yield invalid(_command_path(info, train_job), word, _OVERRIDE_RULE)


def _check_options(info: RuntimeInfo, train_job: TrainJob, given: TuneRun, choice: Choice) -> Iterator[FieldError]:
    """Errors of torchrun's options in a TrainJob with a single-device recipe; a runtime may have them."""
    if choice.recipe not in SINGLE_DEVICE_RECIPES:
        return
    options = {option_of(option[0]) for option in given.options} - OWN_OPTIONS
    for path, words in _own_words(info, train_job):
        for option in sorted(options & {option_of(word) for word in words}):
            rule = f"must not set {option}, an option of torchrun: {choice.recipe} trains on one device, without it"
            yield forbidden(path, rule)


def _own_words(info: RuntimeInfo, train_job: TrainJob) -> Iterator[tuple[str, list[str]]]:
    """The fields in which a TrainJob sets words of the training container, strongest first, with the words."""
    trainer = train_job.spec.trainer
    if trainer is not None:
        yield "spec.trainer.command", split_command(trainer.command or [], "spec.trainer.command")
        yield "spec.trainer.args", list(trainer.args or [])
    for path, change in container_overrides(train_job, info.trainer, info.main_container):
        yield f"{path}.command", split_command(change.command or [], f"{path}.command")
        yield f"{path}.args", list(change.args or [])


def _command_path(info: RuntimeInfo, train_job: TrainJob) -> str:
    """The field that the words after `tune run` come from."""
    own = next((path for path, words in _own_words(info, train_job) if words), None)
    pod = f"{info.runtime} spec.template.spec.replicatedJobs[{info.trainer.name}].template.spec.template.spec"
    return own or f"{pod}.containers[{info.main_container.name}].command"
