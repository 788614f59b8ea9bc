"""The best trial of a sweep, and the command that trains it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from trainer.api.checkpoints import CHECKPOINTS
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.optimization import variable_of, variables_of
from trainer.cli.console import printable
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer_sweeps.commands.view import SweepView

_GIT: Final = "--git"
"""Option of the program that prepares a node."""
_OF_FUNCTION: Final = "_function.py"


def again_lines(view: SweepView, *, script: str = "") -> Iterator[Text]:
    """The best trial with its parameters, and how to train it again; none without one.

    Args:
        view: the sweep.
        script: its path here. Default: as the template has it.
    """
    best = view.best
    if best is None:
        return
    head = Text("best: ", style="bold").append(f"trial {best.number}  ", style="not bold default")
    yield head.append(f"{printable(view.objective.metric)} {printable(best.value or '')}", style="bold green")
    width = max(cell_len(printable(name)) for name in view.parameters)
    for name in view.parameters:
        yield Text(f"  {printable(name):<{width}}  {printable(best.assignment.get(name, ''))}")
    command = again(view, script)
    if command:
        yield Text("train it again, with more steps:", style="bold")
        yield Text(f"  {printable(command)}")
    yield Text("more: ", style="bold").append(
        f"trainer metrics {best.name} -n {view.namespace}, trainer logs {best.name} -n {view.namespace}",
        style="not bold default",
    )


def again(view: SweepView, script: str = "") -> str:
    """The command that trains the best trial again; empty where there is none, or it ran no script of `trainer run`."""
    spec = view.spec.train_job_template.spec
    trainer = mapping_at(spec, "trainer")
    command = [str(word) for word in trainer.get("command") or []]
    path = script or (command[-1].replace("$$", "$") if command else "")
    if view.best is None or not path.endswith(".py") or path.endswith(_OF_FUNCTION):
        return ""
    words = ["trainer", "run", path, "-n", view.namespace]
    if _GIT in command:
        url, commit = (word.replace("$$", "$") for word in command[command.index(_GIT) + 1 :][:2])
        words += ["--code-from", f"git+{url}@{commit}"]
    if runtime := mapping_at(spec, "runtimeRef").get("name"):
        words += ["--runtime", str(runtime)]
    for option, field in (("--nodes", "numNodes"), ("--procs", "numProcPerNode"), ("--image", "image")):
        if trainer.get(field) is not None:
            words += [option, str(trainer[field])]
    for name, amount in (mapping_at(trainer, "resourcesPerNode", "limits") or {}).items():
        words += ["--resource", f"{name}={amount}"]
    words += _environment(trainer)
    template = view.spec.train_job_template.metadata
    labels = {**((template and template.labels) or {}), **mapping_at(spec, "labels")}
    if queue := labels.get(QUEUE_LABEL):
        words += ["--queue", str(queue)]
    if (restarts := spec.get("maxRestarts")) is not None:
        words += ["--max-restarts", str(restarts)]
    if (claim := ((template and template.annotations) or {}).get(CHECKPOINTS)) is not None:
        words += ["--checkpoints", claim]
    arguments = _arguments(spec, view.best.assignment)
    written = " ".join(map(str, trainer.get("args") or []))
    for variable, value in variables_of({name: view.best.assignment.get(name, "") for name in view.parameters}).items():
        if f"$({variable})" not in written:  # the program reads it from its environment
            words += ["--env", f"{variable}={value}"]
    return shlex.join([*words, *(["--", *arguments] if arguments else [])])


def _environment(trainer: Object) -> Iterator[str]:
    for each in objects_in(trainer.get("env")):
        secret = mapping_at(each, "valueFrom", "secretKeyRef")
        if secret:
            yield from ("--secret-env", f"{each['name']}={secret.get('name')}:{secret.get('key')}")
        elif isinstance(each.get("value"), str):
            yield from ("--env", f"{each['name']}={each['value'].replace('$$', '$')}")


def _arguments(spec: Object, assignment: Mapping[str, str]) -> list[str]:
    """The arguments of the script in a template, with the values of a trial."""
    values = {f"$({variable_of(name)})": value for name, value in assignment.items()}
    words = []
    for word in mapping_at(spec, "trainer").get("args") or []:
        shown = str(word)
        for variable, value in values.items():
            shown = shown.replace(variable, value)
        words.append(shown.replace("$$", "$"))
    return words
