"""What `trainer get NAME` prints below the TrainJob's line of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from trainer.api.trainjob import DIRTY, GIT_REVISION
from trainer.cli.console import duration, escaped, printable, terminal_width
from trainer.cli.jobs.progress import short_value
from trainer.cli.jobs.state import STATE_STYLES, JobState
from trainer.framework.building.trainer_step import TRAINER_JOBS
from trainer.framework.status.status import JOBS_CREATED
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, annotations_of
from trainer.progress.interest import MetricValue, by_interest
from trainer.view.row import TrainJobRow

_LABEL = 13
_NEWS = {"Created": "False"} | dict.fromkeys(("Suspended", "Pending", "Stopping", "Restarting", "Stalled"), "True")
"""The status at which a condition of ours matters; others matter when they are True."""
_RESUMED_BY_OTHERS = ("Suspended", "False")
"""Shown for a TrainJob whose spec.suspend is true although its pods run."""
_COUNTS = ("active", "ready", "succeeded", "failed", "suspended")


def details(job: Object, now: datetime, console: Console | None = None, *, is_gone: bool = False) -> list[Text]:
    """Conditions, restarts, complete progress, all metrics, the revision of the code, and the states of its Jobs.

    Args:
        job: the TrainJob.
        now: the present time.
        console: the terminal in whose width lines are broken. Default: they are not.
        is_gone: whether it is shown as it was before it was deleted. Default: it is there.
    """
    row = TrainJobRow.of(job)
    state, status = JobState.of_row(row), job.get("status") or {}
    sections = [
        ("Conditions", list(_conditions(job, now))),
        ("Restarts", [Text(row.restarts)] if row.restarts else []),
        ("Progress", list(_progress(state, now, is_gone=is_gone))),
        ("Steps", list(_steps(state, now))),
        ("Train metrics", _metrics([metric for metric in state.progress.metrics if not metric.is_eval])),
        ("Eval metrics", _metrics([metric for metric in state.progress.metrics if metric.is_eval])),
        ("Code", list(_code(job))),
        ("Jobs", [Text(_counts(counts, row.nodes)) for counts in status.get("jobsStatus") or []]),
    ]
    return [
        Text().append(f"{'' if index else label:<{_LABEL}} ", style="bold").append_text(line)
        for label, texts in sections
        for index, line in enumerate(line for text in texts for line in _wrapped(text, console))
    ]


def _wrapped(text: Text, console: Console | None) -> Iterable[Text]:
    """The lines of a text beside its label."""
    width = None if console is None else terminal_width(console)
    return [text] if console is None or width is None else text.wrap(console, max(width - _LABEL - 1, _LABEL))


def _conditions(job: Object, now: datetime) -> Iterator[Text]:
    """The conditions that matter, each with reason and message, further lines indented."""
    is_suspended = (job.get("spec") or {}).get("suspend") is True
    for condition in (job.get("status") or {}).get("conditions") or []:
        kind = str(condition.get("type") or "")
        if not _is_news(condition, is_suspended=is_suspended):
            continue
        shown = kind if condition.get("status") == "True" else f"not {kind}"
        since = condition.get("lastTransitionTime")
        age = f", {_ago(now, parse_timestamp(since))}" if since else ""
        first, *rest = str(condition.get("message") or "").splitlines() or [""]
        line = Text(printable(shown), style=STATE_STYLES.get(kind, "default"))
        line.append(f" ({printable(str(condition.get('reason') or ''))}{age})", style="default")
        yield line.append(f": {printable(first)}" if first else "", style="default")
        for text in rest:
            yield Text(f"  {escaped(text)}")


def _is_news(condition: Mapping[str, Any], *, is_suspended: bool) -> bool:
    """Whether a condition deviates from the usual course of a TrainJob."""
    kind, status = str(condition.get("type") or ""), condition.get("status")
    if kind == "Created" and status == "True":
        return str(condition.get("message") or "").startswith(f"{JOBS_CREATED};")
    return status == _NEWS.get(kind, "True") or (is_suspended and (kind, status) == _RESUMED_BY_OTHERS)


def _progress(state: JobState, now: datetime, *, is_gone: bool) -> Iterator[Text]:
    progress = state.progress
    parts = [
        "" if progress.percentage is None else f"{progress.percentage} %",
        _of("step", progress.step, progress.total_steps),
        _of("epoch", progress.epoch, progress.total_epochs),
        f"{progress.remaining} left" if progress.remaining and state.is_going_on else "",
    ]
    reported = ", ".join(part for part in parts if part)
    if reported:
        yield Text(reported)
    if progress.updated is not None:
        text = Text(f"updated {_ago(now, progress.updated)}")
        if state.is_going_on and progress.silence:
            text.append(f": {progress.silence_at(now)}, much longer than usual", style="bold yellow")
        yield text
    elif state.word == "Running":
        yield Text("none reported yet", style="dim")
    if progress.checkpoint is not None:
        yield Text(progress.checkpoint.sentence(None if is_gone else state.word, now))


def _steps(state: JobState, now: datetime) -> Iterator[Text]:
    """Initializers and exporter: `dataset-initializer: Running, 45 %, 2 minutes left, updated 3s ago`."""
    for step in state.steps:
        progress = step.progress
        parts = [
            step.state,
            "" if progress.percentage is None else f"{progress.percentage} %",
            f"{progress.remaining} left" if progress.remaining else "",
            f"updated {_ago(now, progress.updated)}" if progress.updated is not None and step.is_running else "",
        ]
        yield Text(f"{step.name}: {', '.join(part for part in parts if part)}")


def _code(job: Object) -> Iterator[Text]:
    revision = annotations_of(job).get(GIT_REVISION, "")
    commit = revision.removesuffix(DIRTY)
    if commit:
        yield Text(f"commit {printable(commit)}{', with local changes' if commit != revision else ''}")


def _ago(now: datetime, moment: datetime) -> str:
    return f"{duration((now - moment).total_seconds())} ago"


def _of(noun: str, done: int | None, total: int | None) -> str:
    if done is None:
        return ""
    return f"{noun} {done}" if total is None else f"{noun} {done} of {total}"


def _metrics(metrics: list[MetricValue]) -> list[Text]:
    ordered = by_interest(metrics)
    width = max((cell_len(metric.name) for metric in ordered), default=0)
    return [Text(f"{set_cell_size(metric.name, width)}  {short_value(metric.value)}") for metric in ordered]


def _counts(counts: Mapping[str, Any], nodes: int | None) -> str:
    """The states of Jobs that have all nodes of the TrainJob each: `node: 2 nodes, all ready`."""
    numbers = {name: counts[name] for name in _COUNTS if counts.get(name)}
    ready, total = numbers.pop("ready", 0), sum(numbers.get(name, 0) for name in _COUNTS)
    name = printable(str(counts.get("name") or ""))
    if total != 1:
        parts = [f"{number} {state}" for state, number in numbers.items()]
        parts += [f"{ready} of {total} ready"] if "active" in numbers else []
        return f"{name}: {total} Jobs, {', '.join(parts)}" if total else f"{name}: no Jobs now"
    (state,) = numbers
    size = "" if nodes is None or name not in TRAINER_JOBS else f"{nodes} node{'' if nodes == 1 else 's'}, "
    return f"{name}: {size}{state if state != 'active' else 'all ready' if ready else 'not all ready'}"
