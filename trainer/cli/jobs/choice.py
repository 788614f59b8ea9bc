"""Which TrainJobs a list shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import State
from trainer.cli.errors import BadInputError
from trainer.cli.jobs.state import JobState
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.field_errors import listed
from trainer.kube.objects import Object, key_of, metadata_of
from trainer.kube.selectors import LabelSelector
from trainer.v1alpha1.status import decode_status

_STATES = (*(str(state) for state in State), UNTOUCHED)

States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        help="Only TrainJobs in this state, such as Failed; may be repeated.",
        show_default=False,
        autocompletion=lambda: list(_STATES),
    ),
]
Selector = Annotated[
    str,
    typer.Option("--selector", "-l", help="Only TrainJobs with these labels, as kubectl has it.", show_default=False),
]
Limit = Annotated[int | None, typer.Option("--limit", help="The most to show; default: all.", min=1)]


@dataclass(frozen=True, slots=True)
class JobChoice:
    """What of the TrainJobs is shown: those that run first, then the newest."""

    states: frozenset[str] = frozenset()
    """Empty: those in all states."""
    selector: str = ""
    """A label selector; empty selects all."""
    limit: int | None = None

    @classmethod
    def parse(cls, states: Sequence[str], selector: str, limit: int | None) -> JobChoice:
        """Read the options.

        Raises:
            BadInputError: there is no such state, or the selector is none.
        """
        words = {word.lower(): word for word in _STATES}
        if unknown := [text for text in states if text.lower() not in words]:
            raise BadInputError(f"--state: there is no state {unknown[0]}: they are {listed(_STATES)}")
        try:
            LabelSelector.parse(selector)
        except ValueError as error:
            raise BadInputError(f"--selector: {error}") from None
        return cls(frozenset(words[text.lower()] for text in states), selector, limit)

    def has(self, job: Object) -> bool:
        """Whether a TrainJob is in one of the states."""
        return not self.states or _state_of(job).word in self.states

    def of(self, jobs: Sequence[Object]) -> list[Object]:
        """What is chosen of TrainJobs, in order and without the limit."""
        known = [(_state_of(job), job) for job in sorted(jobs, key=key_of)]
        chosen = [each for each in known if not self.states or each[0].word in self.states]
        chosen.sort(key=lambda each: str(metadata_of(each[1]).get("creationTimestamp")), reverse=True)
        chosen.sort(key=lambda each: not each[0].is_running)
        return [job for _, job in chosen]


def _state_of(job: Object) -> JobState:
    """The state of a TrainJob as the cluster has it, in either version of the API."""
    is_converted = job.get("apiVersion") == TRAIN_JOBS.api_version
    return JobState.of(job if is_converted else job | {"status": decode_status(job) or {}})


ALL = JobChoice()
