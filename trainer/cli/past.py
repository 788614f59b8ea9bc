"""The history of trainings, as `get`, `logs` and `metrics` ask for it; a distribution beside this one keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console

from trainer.cli.errors import CommandError
from trainer.cli.logs.choice import LogRequest
from trainer.cli.metrics.printing import MetricsFormat
from trainer.kube.objects import Object

_GROUP: Final = "trainer.history"
"""The entry point group; its value is called without arguments and returns a `History`."""


class PastTraining(Protocol):
    """A training that was recorded; all methods block."""

    def print_details(self, console: Console, encode: Callable[[Object], str] | None) -> None:
        """Print its row, conditions and events; with `encode`, which writes objects as text, its TrainJob."""

    def print_logs(self, console: Console, request: LogRequest) -> None:
        """Print what was kept of the logs that are named.

        Raises:
            CommandError: nothing was.
        """

    def print_metrics(self, console: Console, form: MetricsFormat) -> None:
        """Print the samples that were kept.

        Raises:
            CommandError: there are none.
        """


@dataclass(frozen=True, slots=True)
class RecorderProgram:
    """The program that records a cluster."""

    command: list[str]
    ready: str
    """Text that it prints once it records."""


class History(Protocol):
    """The trainings that were recorded; all methods block."""

    def newest(self, name: str, namespace: str, uid: str | None = None) -> PastTraining | None:
        """The newest training of this name, if it has this uid; None where nothing was recorded."""

    def training(self, name: str, namespace: str) -> PastTraining:
        """The newest training of this name, in a namespace or, where that is empty, in all.

        Raises:
            CommandError: there is none.
        """

    def print_list(self, console: Console, namespace: str, encode: Callable[[Object], str] | None) -> None:
        """Print the newest trainings of a namespace or, where that is empty, of all.

        Raises:
            CommandError: there is no history.
        """

    def recorder_program(self, kubeconfig: Path) -> RecorderProgram:
        """Prepare to record, and return the program that records the cluster of a kubeconfig, bounded for a laptop.

        Raises:
            CommandError: there can be no history.
        """


def installed_history() -> History:
    """The history.

    Raises:
        CommandError: no distribution brings one.
    """
    for point in entry_points(group=_GROUP):
        history: History = point.load()()
        return history
    raise CommandError("the history is not installed: pip install 'trainer-operator[dashboard]'")


def recorder_program(kubeconfig: Path) -> RecorderProgram | None:
    """What records the cluster of this kubeconfig on a laptop; None where no history is installed. Blocks."""
    return installed_history().recorder_program(kubeconfig) if entry_points(group=_GROUP) else None


def newest_of_history(name: str, namespace: str, uid: str | None = None) -> PastTraining | None:
    """The newest training of this name, if it has this uid; None where nothing was recorded. Blocks."""
    if not entry_points(group=_GROUP):
        return None
    return installed_history().newest(name, namespace, uid)
