"""The screen of a followed TrainJob."""

from __future__ import annotations

import io
import re
from typing import Any

import anyio
import pytest
from rich.console import Console

from trainer.cli.jobs.state import JobState
from trainer.cli.run.display import JobDisplay
from trainer.kube.objects import ObjectKey
from trainer.progress.interest import MetricValue
from trainer.view.progress import TrainingProgress
from trainer_kube_testing import ManualClock

A, B = ObjectKey("default", "a"), ObjectKey("default", "b")


def screen(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=60, highlight=False, markup=False, soft_wrap=True)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_plain_lines_without_a_terminal(clock: ManualClock) -> None:
    """Without a terminal every change of the state is one line, and so is every line of a log."""
    console = screen()
    with JobDisplay(console, [A], clock) as display:
        await display.keep_fresh()
        display.state(A, JobState("Created"))
        display.log(A, "node-0", "a line that is longer than the terminal is wide, with [brackets] and spaces   ")
        display.state(A, JobState("Running"))
        display.state(A, JobState("Running"))
        display.warning(A, "Pod x: BackOff")
        display.state(A, JobState("Running", TrainingProgress(percentage=20, remaining="1 min")))
        await clock.advance(61)
        display.state(
            A, JobState("Complete", TrainingProgress(percentage=100), reason="Done", message="all jobs completed")
        )

    assert text_of(console).splitlines() == [
        "a  Created",
        "node-0 | a line that is longer than the terminal is wide, with [brackets] and spaces   ",
        "a  Running",
        "warning: Pod x: BackOff",
        "a  Running  20 %  ETA 1 min",
        "a  Complete  after 1 min 01 s",
    ]


def test_several_jobs_are_reported_apart(clock: ManualClock) -> None:
    """With several jobs, logs and warnings name the job; with several namespaces the job's namespace as well."""
    console = screen()
    with JobDisplay(console, [A, B], clock) as display:
        display.log(A, "node-0", "x")
        display.warning(B, "y")
    with JobDisplay(console, [A, ObjectKey("team", "a")], clock) as display:
        display.log(A, "node-0", "z")

    assert text_of(console).splitlines() == ["a/node-0 | x", "warning: b: y", "default/a/node-0 | z"]


def test_advice(clock: ManualClock) -> None:
    """What to do is said with the command that says more, which leads to the same cluster."""
    console = screen()
    with JobDisplay(console, [A], clock, target=" --context x") as display:
        display.advice(A, "ask for less")
        display.hint(A, "no progress")

    assert text_of(console).splitlines() == [
        "  remedy   ask for less",
        "  more     trainer explain a -n default --context x",
        "note: no progress",
    ]


async def test_live_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """On a terminal the elapsed time ticks at the bottom, and states are not repeated above."""
    monkeypatch.setenv("TERM", "xterm")
    console = screen(terminal=True)
    with JobDisplay(console, [A], clock) as display:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(display.keep_fresh)
            display.state(A, JobState("Running", TrainingProgress(percentage=45)))
            await clock.advance(42)
            tasks.cancel_scope.cancel()

    lines = text_of(console)
    assert "45 %" in lines
    assert "42 s" in lines
    assert "\n" not in lines.split("42 s")[0].strip("\n").splitlines()[-1]


async def test_a_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """The last bar that was written is shown above the state, as wide as fits, until its line has ended."""
    monkeypatch.setenv("TERM", "xterm")
    console = screen(terminal=True)
    with JobDisplay(console, [A], clock) as display:
        display.state(A, JobState("Running"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(display.keep_fresh)
            for node, text in (("node-0", "10%"), ("node-1", "20% " + "=" * 80), ("node-0", "\x1b[31m30%\x1b[0m")):
                display.log_state(A, node, text)
                await clock.advance(0.2)
            tasks.cancel_scope.cancel()
        display.log(A, "node-0", "done")
        display.log(A, "node-1", "done")

    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text_of(console)).replace("\r", "\n").splitlines()
    shown = [line for line in lines if line.startswith("node")]
    node_1 = f"node-1 | 20% {'=' * 45}…"
    states = ["node-0 | 10%", node_1, "node-0 | 30%"]
    assert [*dict.fromkeys(shown)] == [*states, "node-0 | done", "node-1 | done"]
    assert shown[shown.index("node-0 | done") :].count(node_1) == 1
    assert shown[-1] == "node-1 | done"


async def test_nodes_have_colours(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """On a terminal the lines of different nodes begin in different colours."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = screen(terminal=True)
    with JobDisplay(console, [A], clock) as display:
        for node in ("node-0", "node-1", "node-0"):
            display.log(A, node, "x")

    first, second, third = re.findall(r"\x1b\[([0-9;]+)mnode", text_of(console))
    assert first == third != second


def running(percentage: int | None, **progress: Any) -> JobState:
    return JobState("Running", TrainingProgress(percentage, **progress))


def test_files_get_a_line_every_ten_percent(clock: ManualClock) -> None:
    """Without a terminal, progress is reported in steps of ten per cent, and when it falls back."""
    console = screen()
    with JobDisplay(console, [A], clock) as display:
        display.state(A, running(None))
        for percentage in [*range(25), 3, 4, 11]:
            display.state(A, running(percentage, remaining=f"{100 - percentage} s"))

    assert text_of(console).splitlines() == [
        "a  Running",
        "a  Running  0 %  ETA 100 s",
        "a  Running  10 %  ETA 90 s",
        "a  Running  20 %  ETA 80 s",
        "a  Running  3 %  ETA 97 s",
        "a  Running  11 %  ETA 89 s",
    ]


REPORTED = {
    "remaining": "about 2 minutes",
    "metrics": (
        MetricValue("learning_rate", "0.0001"),
        MetricValue("loss", "0.23471234"),
        MetricValue("accuracy", "0.9", True),
    ),
}


@pytest.mark.parametrize(
    ("job", "width", "line"),
    [
        pytest.param(
            "jax-digits",
            80,
            "jax-digits  Running  ███████▏░░░░░░░░  45 %  ETA about 2 minutes  1 min 05 s",
            id="80 columns",
        ),
        pytest.param(
            "jax", 80, "jax  Running  ███▌░░░░  45 %  ETA about 2 minutes  1 min 05 s  loss 0.2347", id="short name"
        ),
        pytest.param("a" * 60, 80, f"{'a' * 60}  Running  45 %  E…", id="too long"),
    ],
)
async def test_live_bar(monkeypatch: pytest.MonkeyPatch, clock: ManualClock, job: str, width: int, line: str) -> None:
    """The live line shows bar, remaining and elapsed time, and then as many metrics as there is room for."""
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width, soft_wrap=True)
    key = ObjectKey("default", job)
    with JobDisplay(console, [key], clock) as display:
        await clock.advance(65)
        display.state(key, running(45, **REPORTED))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(display.keep_fresh)
            await clock.advance(0)
            tasks.cancel_scope.cancel()

    shown = re.split(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]", text_of(console))
    assert [text for text in shown if "45" in text][-1] == line


def test_texts_of_the_cluster_cannot_command_the_terminal(clock: ManualClock) -> None:
    """Warnings and names of metrics are shown without control characters."""
    console = screen()
    with JobDisplay(console, [A], clock) as display:
        display.warning(A, "bad \x1b]0;title\x07 [red]name")

    assert text_of(console) == "warning: bad \\x1b]0;title\\x07 [red]name\n"
