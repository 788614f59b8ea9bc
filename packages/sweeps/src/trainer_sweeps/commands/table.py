"""Sweeps and their trials as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.text import Text

from trainer.cli.columns import GAP, elided, fitted, total
from trainer.cli.console import duration, printable, short_duration, terminal_width
from trainer.cli.jobs.progress import progress_bar, short_remaining, short_value
from trainer.cli.jobs.state import STATE_STYLES
from trainer.cli.jobs.table import age
from trainer.kube.objects import Object, mapping_at, metadata_of, name_of, namespace_of, objects_in
from trainer_sweeps.api.optimizationjob import TrialState
from trainer_sweeps.commands.view import ShownTrial, SweepView, word_of

STYLES: Final[Mapping[str, str]] = STATE_STYLES | {"Succeeded": "green", "Pruned": "dim"}
"""How Rich shows the states of sweeps and trials."""
_BAR: Final = 10
_COUNTED: Final = ("running", "succeeded", "failed", "pruned")
_VALUE: Final = "value"
_LONGEST_NUMBER: Final = 10
"""Cells of a number as it is shown, such as -1.234e-05, of which nothing may be missing."""
_LONGEST_VALUE: Final = 24
"""Cells of a choice."""


def sweep_lines(
    sweeps: Sequence[Object], now: datetime, console: Console, *, namespaces: bool, wide: bool
) -> list[Text]:
    """One line for each OptimizationJob, as its status says it, below a header."""
    rows = [_sweep(each, now, ascii_only=console.options.ascii_only) for each in sweeps]
    titles = [*(["NAMESPACE"] if namespaces else []), "NAME", "STATE", "PROGRESS", "BEST", "TRIALS"]
    titles += [*(["TRIAL", "ALGORITHM"] if wide else []), "AGE"]
    return _lines(
        dict(zip(titles, titles, strict=True)),
        rows,
        console,
        shortest={"NAMESPACE": 12, "NAME": 20, "BEST": 16},
        dispensable=["ALGORITHM", "AGE"],
    )


def _sweep(obj: Object, now: datetime, *, ascii_only: bool) -> dict[str, Text]:
    status, spec, state = mapping_at(obj, "status"), mapping_at(obj, "spec"), word_of(obj)
    counts = mapping_at(status, "trialCounts")
    said = [f"{counts[name]} {name}" for name in _COUNTED if counts.get(name)]
    percentage, result = status.get("progressPercentage"), mapping_at(status, "result")
    objective = next(iter(objects_in(spec.get("objectives"))), {})
    value = str(result.get("value") or "")
    return {
        "NAMESPACE": Text(namespace_of(obj)),
        "NAME": Text(name_of(obj)),
        "STATE": Text(printable(state), style=STYLES.get(state, "default")),
        "PROGRESS": _percentage(percentage if isinstance(percentage, int) else None, ascii_only=ascii_only),
        "BEST": Text(printable(f"{objective.get('metric') or ''} {short_value(value)}") if value else ""),
        "TRIALS": Text(f"{spec.get('numTrials') or 1}" + (f": {', '.join(said)}" if said else "")),
        "TRIAL": Text(printable(str(result.get("trainJobName") or ""))),
        "ALGORITHM": Text(printable(next(iter(mapping_at(spec, "searchAlgorithm")), ""))),
        "AGE": Text(age(metadata_of(obj).get("creationTimestamp"), now)),
    }


def trial_lines(view: SweepView, trials: Sequence[ShownTrial], console: Console) -> list[Text]:
    """One line for each trial below a header: parameters, value, progress and time."""
    rows = [_trial(view, each, ascii_only=console.options.ascii_only) for each in trials]
    parameters = {_key(name): printable(name) for name in view.parameters}
    columns = {"TRIAL": "TRIAL", "STATE": "STATE"} | parameters | {_VALUE: printable(view.objective.metric)}
    columns |= {title: title for title in ("PROGRESS", "ETA", "TIME") if any(row[title] for row in rows)}
    dispensable = ["TIME", "ETA", *reversed(parameters)]
    values = {key: max((row[key].cell_len for row in rows), default=0) for key in parameters}
    shortest = {key: min(max(cells, 8), _LONGEST_NUMBER) for key, cells in values.items()}
    return _lines(columns, rows, console, shortest=shortest, dispensable=dispensable)


def _key(parameter: str) -> str:
    """A parameter may be called as another column, or as the metric."""
    return f"parameter {parameter}"


def _trial(view: SweepView, shown: ShownTrial, *, ascii_only: bool) -> dict[str, Text]:
    trial, job = shown.trial, shown.job
    is_best = view.best is not None and view.best.number == trial.number
    style = "bold green" if is_best else "dim" if trial.state is not TrialState.SUCCEEDED else "default"
    runs = not trial.has_ended and job is not None
    progress = job.shown if runs and job is not None else None
    took = shown.seconds
    if took is None and runs and trial.started is not None:
        took = (view.now - trial.started).total_seconds()
    parameters = {
        _key(name): Text(elided(printable(short_value(trial.assignment.get(name, ""))), _LONGEST_VALUE))
        for name in view.parameters
    }
    return parameters | {
        "TRIAL": Text(str(trial.number)),
        "STATE": Text(printable(shown.word), style=STYLES.get(shown.word, "default")),
        _VALUE: Text(printable(short_value(trial.value or "")), style=style),
        "PROGRESS": _percentage(progress.percentage if progress is not None else None, ascii_only=ascii_only),
        "ETA": Text(short_remaining(progress) if progress is not None and job is not None and job.is_going_on else ""),
        "TIME": Text(short_duration(took) if took is not None else ""),
    }


def header_lines(view: SweepView, console: Console) -> list[Text]:
    """The state of a sweep: trials that have ended, the remaining time, and the best one so far."""
    line = Text().append(f"{view.name}  ", style="bold")
    line.append(printable(view.state), style=STYLES.get(view.state, "default"))
    line.append(f"  {view.ended} of {view.total} trials  ")
    line.append_text(progress_bar(view.percentage, _BAR, ascii_only=console.options.ascii_only))
    line.append(f" {view.percentage} %")
    if view.remaining_seconds is not None:
        line.append(f"  ETA {duration(view.remaining_seconds)}")
    line.append(f"  {duration(view.elapsed_seconds)}")
    return [line, *([Text(view.counts, style="dim")] if view.counts else []), *best_lines(view)]


def best_lines(view: SweepView) -> list[Text]:
    """The best trial so far on one line; none without one."""
    if view.best is None:
        return []
    line = Text("best", style="bold green").append(f"  {printable(view.objective.metric)} ", style="default")
    line.append(short_value(view.best_value), style="bold").append(
        f"  trial {view.best.number}", style="not bold default"
    )
    for name in view.parameters:
        value = short_value(view.best.assignment.get(name, ""))
        line.append(f"  {printable(name)} {printable(value)}", style="not bold default")
    return [line]


def _percentage(percentage: int | None, *, ascii_only: bool) -> Text:
    if percentage is None:
        return Text()
    return progress_bar(percentage, _BAR, ascii_only=ascii_only).append(f" {percentage:3}%", style="default")


def _lines(
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Text]],
    console: Console,
    *,
    shortest: Mapping[str, int],
    dispensable: Sequence[str],
) -> list[Text]:
    """Rows below the titles of their columns; columns that do not fit are left out."""
    width, ascii_only = terminal_width(console), console.options.ascii_only
    table = [{key: Text(title) for key, title in columns.items()}, *rows]
    widths = fitted({key: max(row[key].cell_len for row in table) for key in columns}, width, shortest, dispensable)
    lines = []
    for row in table:
        line = Text()
        for key, cells in widths.items():
            cell = row[key]
            if cell.cell_len > cells:
                cell = Text(elided(cell.plain, cells, ascii_only=ascii_only), style=cell.style)
            line.append_text(cell).append(" " * (cells - cell.cell_len + GAP))
        line.rstrip()
        if width is not None and total(widths) > width:
            line.truncate(width, overflow="crop" if ascii_only else "ellipsis")
        lines.append(line)
    return lines
