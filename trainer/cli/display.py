"""The screen of a followed TrainJob: node logs scrolling by, and below them, on a terminal, a live state line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.text import Text

from trainer.cli.console import duration
from trainer.cli.job_state import JobState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rich.console import Console

    from trainer.kube.clock import Clock
    from trainer.kube.objects import ObjectKey

_REFRESH_SECONDS = 0.2
_NODE_STYLES = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "bright_magenta")
_STATE_STYLES = {
    "Running": "green",
    "Complete": "bold green",
    "Failed": "bold red",
    "Suspended": "yellow",
    "Blocked": "bold yellow",
    "Pending": "yellow",
    "Restarting": "yellow",
}


class JobDisplay:
    """Prints what happens to some TrainJobs; a context manager that owns the bottom of a terminal while it is open."""

    def __init__(self, console: Console, jobs: Sequence[ObjectKey], clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._started = clock.monotonic()
        self._states = {job: JobState() for job in jobs}
        self._one_namespace = len({job.namespace for job in jobs}) == 1
        self._styles: dict[str, str] = {}
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
        """Let the elapsed time of the live state line tick, until cancelled."""
        while self._live is not None:
            self._live.refresh()
            await self._clock.sleep(_REFRESH_SECONDS)

    def log(self, job: ObjectKey, node: str, text: str) -> None:
        """Print one line of a node's log."""
        source = node if len(self._states) == 1 else f"{self._label(job)}/{node}"
        style = self._styles.setdefault(source, _NODE_STYLES[len(self._styles) % len(_NODE_STYLES)])
        visible = text.rsplit("\r", 1)[-1]  # a progress bar overwrites itself: its last shape is the one to see
        if not self._console.is_terminal:  # Rich manages a few thousand lines a second, a training may log more
            print(f"{source} | {visible}", file=self._console.file, flush=True)
            return
        self._console.print(Text(f"{source} | ", style=style).append(visible, style="default"))

    def warning(self, job: ObjectKey, text: str) -> None:
        """Print what went wrong with a job, or what to look at."""
        line = Text("warning: ", style="bold yellow").append(f"{self._prefix(job)}{text}", style="not bold default")
        self._console.print(line)

    def state(self, job: ObjectKey, state: JobState) -> None:
        """Take note of a job's state; without a live line every change is printed."""
        before, self._states[job] = self._states[job], state
        if before == state:
            return
        if self._live is not None:
            self._live.refresh()
        if state.is_terminal:
            took = duration(self._clock.monotonic() - self._started)
            self._console.print(self._state_text(job, state, f"after {took}", state.explanation))
        elif self._live is None or (state.explanation and state.explanation != before.explanation):
            self._console.print(self._state_text(job, state, state.explanation))

    def _state_text(self, job: ObjectKey, state: JobState, *details: str) -> Text:
        line = Text(f"{self._label(job)}  ", style="bold")
        line.append(str(state), style=_STATE_STYLES.get(state.word, "not bold default"))
        return line.append("".join(f"  {detail}" for detail in details if detail), style="not bold default")

    def _state_lines(self) -> Group:
        elapsed = duration(self._clock.monotonic() - self._started)
        lines = [self._state_text(job, s, elapsed) for job, s in self._states.items() if not s.is_terminal]
        # Rich leaves a blank line behind when the last thing it has shown had no line at all.
        return Group(*(lines or [Text()]))

    def _label(self, job: ObjectKey) -> str:
        return job.name if self._one_namespace else str(job)

    def _prefix(self, job: ObjectKey) -> str:
        return "" if len(self._states) == 1 else f"{self._label(job)}: "
