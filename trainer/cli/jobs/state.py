"""The state of a TrainJob in the words of tables and screens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainer.cli.console import printable
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.objects import Object
from trainer.view.progress import NOTHING_REPORTED, StepProgress, TrainingProgress, in_order
from trainer.view.row import ENDS, TrainJobRow

_OBSTACLES = ("Pending", "Stopping", "Restarting")
"""States with one line for each reason in their message."""
_WANTED = ("Created", "Suspended")
"""States that need no explanation."""
_RUNNING = ("Running", "Stopping", "Restarting", "Stalled")
"""States in which nodes run, have not ended yet, or are started again."""
_ACTIVE = ("Running", "Pending", "Restarting")
"""States in which the reported remaining time holds."""


STATE_STYLES = {
    "Running": "green",
    "Complete": "bold green",
    "Failed": "bold red",
    "Suspended": "yellow",
    "Blocked": "bold yellow",
    "Pending": "yellow",
    "Stopping": "yellow",
    "Restarting": "yellow",
    "Stalled": "bold yellow",
}
"""How Rich shows the states that stand out."""


@dataclass(frozen=True, slots=True)
class JobState:
    """State of a TrainJob; equal states look the same."""

    word: str = UNTOUCHED
    """`status.state`; Submitted before a controller has written it."""
    progress: TrainingProgress = NOTHING_REPORTED
    """The reported progress."""
    reason: str = ""
    message: str = ""
    """Why it ended, cannot start or restarts."""
    steps: tuple[StepProgress, ...] = ()
    """The steps beside the training."""

    @classmethod
    def of(cls, job: Object) -> JobState:
        """Read a TrainJob object."""
        return cls.of_row(TrainJobRow.of(job))

    @classmethod
    def of_row(cls, row: TrainJobRow) -> JobState:
        """The state of a row, with all problems of a TrainJob that cannot go on."""
        if row.state in _WANTED:
            return cls(row.state, row.progress, steps=row.steps)
        # Each line begins with its reason; that of the first one is the condition's.
        # Of other states the further lines are the end of a log, which has just been shown.
        problems = "; ".join(row.lines).removeprefix(f"{row.reason}: ")
        message = problems if row.state in _OBSTACLES else row.message
        return cls(row.state, row.progress, row.reason, message, row.steps)

    @property
    def step(self) -> StepProgress | None:
        """The first step that runs: until the training has reported something, and after it; None without one."""
        if self.is_terminal:
            return None
        is_training = self.progress.updated is not None
        return next((step for step in self.steps if step.is_running and (step.is_last or not is_training)), None)

    @property
    def shown(self) -> TrainingProgress:
        """The progress of the step that runs, else that of the training."""
        return self.progress if self.step is None else self.step.progress

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self.word in ENDS

    @property
    def is_untouched(self) -> bool:
        """Whether no controller has written anything about the job yet."""
        return self.word == UNTOUCHED and not self.reason

    @property
    def is_complete(self) -> bool:
        """Whether the job has ended well."""
        return self.word == "Complete"

    @property
    def is_running(self) -> bool:
        """Whether nodes run, or are started again."""
        return self.word in _RUNNING

    @property
    def is_going_on(self) -> bool:
        """Whether its nodes run, or will run without intervention, so that a remaining time makes sense."""
        return self.word in _ACTIVE

    def with_progress(self, progress: TrainingProgress) -> JobState:
        """The state with progress from the log, unless that of the TrainJob is newer."""
        if not progress.is_newer_than(self.progress):
            return self
        is_silent = self.progress.silence and progress.updated == self.progress.updated
        return self if is_silent else replace(self, progress=progress)

    def with_steps(self, logged: Iterable[StepProgress]) -> JobState:
        """The state with steps from their logs and pods, which are ahead of the status unless that knows their end."""
        if self.is_terminal:
            return self
        known = {step.name: step for step in self.steps}
        ahead = {step.name: step for step in logged if step.name not in known or known[step.name].is_running}
        return replace(self, steps=in_order({**known, **ahead}.values()))

    def __str__(self) -> str:
        parts, progress = [self.word, self.step.name] if self.step else [self.word], self.shown
        if progress.percentage is not None and not self.is_terminal:
            parts.append(f"{progress.percentage} %")
        if progress.remaining and self.is_going_on:
            parts.append(f"ETA {progress.remaining}")
        if progress.silence and self.is_going_on:
            parts.append(progress.silence)
        return "  ".join(parts)

    @property
    def explanation(self) -> str:
        """Reason and message as one line; empty when there is nothing to explain.

        The message of a failure speaks for itself: the reason is a word of JobSet's, and so are both of a success.
        """
        if self.word == "Complete":
            return ""
        if self.word == "Failed" and self.message:
            return printable(self.message)
        return printable(": ".join(part for part in (self.reason, self.message) if part))
