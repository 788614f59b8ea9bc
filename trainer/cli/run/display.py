"""The screen of followed TrainJobs: node logs, and below them, on a terminal, live lines: a progress bar, the state."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from trainer.cli.console import duration, printable
from trainer.cli.jobs.progress import in_room, metric_text, progress_bar
from trainer.cli.jobs.state import STATE_STYLES, JobState
from trainer.cli.logs.live_line import LiveLine
from trainer.cli.logs.printer import LogPrinter
from trainer.kube.clock import Clock
from trainer.kube.objects import ObjectKey
from trainer.progress.interest import by_interest

_REFRESH_SECONDS = 0.2
_LONGEST_BAR, _BAR_STEP = 24, 8
"""Cells; the width of a bar is a multiple of eight, so that it does not change with every digit beside it."""
_STEP = 10
"""Per cent of progress between two lines without a terminal, so that logs of CI stay short."""


class JobDisplay:
    """Prints what happens to TrainJobs; a context manager that owns the bottom of a terminal while it is open."""

    def __init__(
        self, console: Console, jobs: Sequence[ObjectKey], clock: Clock, *, elapsed: float = 0, target: str = ""
    ) -> None:
        self._console = console
        # The options that lead to the cluster, for commands that are suggested.
        self._target = target
        self._clock = clock
        # Of a training that is attached to, so many seconds have passed already.
        self._started = clock.monotonic() - elapsed
        self._states = {job: JobState() for job in jobs}
        self._printed: dict[ObjectKey, JobState] = {}
        self._one_namespace = len({job.namespace for job in jobs}) == 1
        self._log_state = LiveLine(console)
        self._lines = LogPrinter(console, self._log_state)
        self._live = Live(
            console=console, get_renderable=self._state_lines, auto_refresh=False, transient=True
        ) if console.is_interactive else None  # fmt: skip

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    async def keep_fresh(self) -> None:
        """Update the elapsed time of the live state line until cancelled."""
        while self._live is not None:
            self._live.refresh()
            await self._clock.sleep(_REFRESH_SECONDS)

    def log(self, job: ObjectKey, node: str, text: str) -> None:
        """Print one line of a node's log."""
        source = self._source(job, node)
        if self._log_state.end(source) and self._live is not None:
            self._live.refresh()
        self._lines.print(source, text)

    def log_state(self, job: ObjectKey, node: str, text: str) -> None:
        """Show the state of a line of a node's log that is written over, above the state lines."""
        self._lines.show_state(self._source(job, node), text)

    def warning(self, job: ObjectKey, text: str) -> None:
        """Print a warning about a job."""
        self._note(job, "warning: ", "bold yellow", text)

    def hint(self, job: ObjectKey, text: str) -> None:
        """Print a line of advice about a job."""
        self._note(job, "note: ", "bold", text)

    def advice(self, job: ObjectKey, remedy: str) -> None:
        """Print what to do about the state of a job that was shown last, and the command that says more."""
        command = f"trainer explain {job.name} -n {job.namespace}{self._target}"
        for name, text in (("remedy", remedy), ("more", command)):  # as `trainer explain` prints them
            self._console.print(Text(f"  {name:<9}", style="bold").append(printable(text), style="not bold default"))

    def state(self, job: ObjectKey, state: JobState) -> None:
        """Show a job's state; without a live line print every change of state, and progress every 10 per cent."""
        before, self._states[job] = self._states[job], state
        if before == state:
            return
        if self._live is not None and before.word != state.word:
            self._live.refresh()
        if state.is_terminal:
            took = duration(self._clock.monotonic() - self._started)
            self._console.print(self._state_text(job, state, f"after {took}", state.explanation))
        elif self._live is None:
            if _is_worth_a_line(self._printed.get(job, JobState()), state):
                self._printed[job] = state
                self._console.print(self._state_text(job, state, state.explanation))
        elif state.explanation and state.explanation != before.explanation:
            self._console.print(self._state_text(job, state, state.explanation))

    def _state_text(self, job: ObjectKey, state: JobState, *details: str) -> Text:
        line = Text().append(f"{self._label(job)}  ", style="bold")
        line.append(str(state), style=STATE_STYLES.get(state.word, "default"))
        return line.append("".join(f"  {detail}" for detail in details if detail))

    def _state_lines(self) -> Group:
        lines = [self._live_line(job, state) for job, state in self._states.items() if not state.is_terminal]
        row = self._log_state.row
        # Rich leaves a blank line behind when the last frame had no line.
        return Group(*([row] if row is not None and lines else ()), *(lines or [Text()]))

    def _live_line(self, job: ObjectKey, state: JobState) -> Text:
        """Name, state, step beside the training, bar, remaining and elapsed time, and as many metrics as fit."""
        elapsed = duration(self._clock.monotonic() - self._started)
        progress = state.shown
        room = self._console.width - 1
        metrics = [metric_text(metric) for metric in by_interest(progress.metrics)]
        if progress.percentage is None:
            line = self._state_text(job, state, elapsed)
        else:
            line = Text().append(f"{self._label(job)}  ", style="bold")
            line.append(state.word, style=STATE_STYLES.get(state.word, "default"))
            line.append(f"  {state.step.name}" if state.step is not None else "")
            eta = f"ETA {progress.remaining}" if progress.remaining else progress.silence
            eta = f"  {eta}" if eta and state.is_going_on else ""
            end = f"{progress.percentage:4} %{eta}  {elapsed}"
            width = _bar_width(room - line.cell_len - cell_len(end) - 2, cell_len(metrics[0]) + 2 if metrics else 0)
            if width:
                bar = progress_bar(progress.percentage, width, ascii_only=self._console.options.ascii_only)
                line.append("  ").append_text(bar)
            line.append(end)
        shown = in_room(metrics, room - line.cell_len - 2)
        line.append(f"  {shown}" if shown else "", style="dim")
        line.truncate(room, overflow="ellipsis")
        return line

    def _note(self, job: ObjectKey, label: str, style: str, text: str) -> None:
        prefix = "" if len(self._states) == 1 else f"{self._label(job)}: "
        self._console.print(Text(label, style=style).append(f"{prefix}{printable(text)}", style="not bold default"))

    def _source(self, job: ObjectKey, node: str) -> str:
        return node if len(self._states) == 1 else f"{self._label(job)}/{node}"

    def _label(self, job: ObjectKey) -> str:
        return job.name if self._one_namespace else str(job)


def _bar_width(room: int, metric: int) -> int:
    """The greatest width, beside the first metric if both fit."""
    width = room - metric if room - metric >= _BAR_STEP else room
    return max(min(width // _BAR_STEP * _BAR_STEP, _LONGEST_BAR), 0)


def _is_worth_a_line(printed: JobState, state: JobState) -> bool:
    """Whether the state differs enough from the last printed one to print it into a file."""
    if (printed.word, printed.explanation) != (state.word, state.explanation):
        return True
    if printed.step is not None and state.step is None:  # its 100 % has been printed
        return state.progress.updated is not None and not printed.step.is_last
    if state.step is not None and (printed.step is None or printed.step.name != state.step.name):
        return True
    before, now = printed.shown.percentage, state.shown.percentage
    if before is None or now is None:
        return before != now
    return now < before or now // _STEP > before // _STEP
