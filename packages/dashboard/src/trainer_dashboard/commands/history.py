"""`trainer history`: what was trained, also what the cluster has forgotten."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from trainer.cli.console import note, output
from trainer.cli.errors import CommandError
from trainer.cli.logs.logs import parse_duration
from trainer.kube.clock import SystemClock
from trainer.kubernetes_yaml import dump, join
from trainer_dashboard.commands.export import export
from trainer_dashboard.commands.history_database import DatabaseUrl, open_history
from trainer_dashboard.commands.past import past_details, past_object, past_table
from trainer_dashboard.commands.past_sweeps import past_trials, sweep_details, sweep_object, sweep_table
from trainer_dashboard.commands.record import record
from trainer_dashboard.history.queries import Filter, only
from trainer_dashboard.history.sweep_queries import SweepHistory

history = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    help="List what was trained, also what the cluster has forgotten and `trainer history record` has seen.",
)


class ListFormat(StrEnum):
    """Values of `--output`."""

    TABLE = "table"
    JSON = "json"


class SweepFormat(StrEnum):
    """Values of `--output` of sweeps."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


@history.callback()
def _history(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_trainings()


@history.command("list")
def list_trainings(
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only of this namespace.")] = "",
    name: Annotated[str, typer.Option(help="Only of this name.")] = "",
    state: Annotated[str, typer.Option(help="Only in this state, such as Failed.")] = "",
    runtime: Annotated[str, typer.Option(help="Only on this runtime.")] = "",
    sweep: Annotated[str, typer.Option(help="Only trials of sweeps of this name.")] = "",
    since: Annotated[str | None, typer.Option(metavar="7d", help="Only created within this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Most trainings that are shown.")] = 100,
    form: Annotated[ListFormat, typer.Option("--output", "-o", help="Output format.")] = ListFormat.TABLE,
    database: DatabaseUrl = None,
) -> None:
    """List trainings, the newest first."""
    start = None
    if since is not None:
        start = (SystemClock().now() - parse_duration(since)).timestamp()
    which = Filter(namespaces=only(namespace), name=name, state=state, runtime=runtime, sweep=sweep, since=start)
    found = open_history(database).trainings(which, limit=limit + 1)
    records = found[:limit]
    if form is ListFormat.JSON:
        _say_json([past_object(each) for each in records])
    else:
        for line in past_table(records, output()) if records else ():
            output().print(line)
        if not records:
            note("the history has no such training")
    if len(found) > limit:
        note(f"there are more: --limit {10 * limit}")


@history.command("show")
def show(
    training: Annotated[str, typer.Argument(help="NAME, NAMESPACE/NAME, or the beginning of a uid.")],
    *,
    database: DatabaseUrl = None,
) -> None:
    """Show a training in detail: how it ended, its metrics and its events."""
    opened = open_history(database)
    for line in past_details(opened, opened.training(training), output()):
        output().print(line)


@history.command("objects")
def objects(
    training: Annotated[str, typer.Argument(help="NAME, NAMESPACE/NAME, or the beginning of a uid.")],
    *,
    database: DatabaseUrl = None,
) -> None:
    """Print the objects of a training as YAML: TrainJob, runtime, and what was rendered, without secrets."""
    opened = open_history(database)
    record = opened.training(training)
    found = opened.objects(record.uid)
    if not found:
        raise CommandError(f"the history has no objects of TrainJob {record.namespace}/{record.name} any more")
    output().file.write(join(dump(each) for each in found))


@history.command("sweeps")
def sweeps(
    sweep: Annotated[str, typer.Argument(help="NAME or NAMESPACE/NAME of one that is shown with its trials.")] = "",
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only of this namespace.")] = "",
    state: Annotated[str, typer.Option(help="Only in this state, such as Failed.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most sweeps that are shown.")] = 100,
    form: Annotated[SweepFormat, typer.Option("--output", "-o", help="Output format.")] = SweepFormat.TABLE,
    database: DatabaseUrl = None,
) -> None:
    """List sweeps, the newest first, or show one with its trials; as YAML it is the OptimizationJob itself."""
    opened = SweepHistory(open_history(database))
    if sweep:
        one = opened.sweep(f"{namespace}/{sweep}" if namespace and "/" not in sweep else sweep)
        if form is SweepFormat.YAML:
            output().file.write(dump(opened.object_of(one.uid)))
        elif form is SweepFormat.JSON:
            _say_json(sweep_object(one) | {"trials": past_trials(opened, one)})
        else:
            for line in sweep_details(opened, one, output()):
                output().print(line)
        return
    found = opened.sweeps(Filter(namespaces=only(namespace), state=state), limit=limit + 1)
    records = found[:limit]
    if form is SweepFormat.YAML:
        output().file.write(join(dump(opened.object_of(each.uid)) for each in records))
    elif form is SweepFormat.JSON:
        _say_json([sweep_object(each) for each in records])
    else:
        for line in sweep_table(records, output()) if records else ():
            output().print(line)
        if not records:
            note("the history has no such sweep")
    if len(found) > limit:
        note(f"there are more: --limit {10 * limit}")


def _say_json(content: object) -> None:
    output().file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


history.command("record")(record)
history.command("export")(export)
