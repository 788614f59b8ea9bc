"""The history of trainings, as `get`, `logs` and `metrics` ask for it; a distribution beside this one keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Protocol

from anyio.to_thread import run_sync
from rich.console import Console

from trainer.cli.current_cluster import ConnectedCluster, identity_of
from trainer.cli.errors import CommandError
from trainer.cli.logs.choice import LogRequest
from trainer.cli.metrics.printing import MetricsFormat
from trainer.distributions import OtherReleaseError, check_entry_point
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
    """The trainings that were recorded, of a cluster by its identity or, where that is empty, of all.

    All methods block.
    """

    def newest(self, name: str, namespace: str, cluster: str, uid: str | None = None) -> PastTraining | None:
        """The newest training of this name, if it has this uid; None where nothing was recorded."""

    def training(self, name: str, namespace: str, cluster: str) -> PastTraining:
        """The newest training of this name, in a namespace or, where that is empty, in all.

        Raises:
            CommandError: there is none.
        """

    def print_list(
        self, console: Console, namespace: str, cluster: str, encode: Callable[[Object], str] | None
    ) -> None:
        """Print the newest trainings of a namespace or, where that is empty, of all.

        Raises:
            CommandError: there is no history.
        """

    def recorder_program(self, kubeconfig: Path) -> RecorderProgram:
        """Prepare to record, and return the program that records the cluster of a kubeconfig, bounded for a laptop.

        Raises:
            CommandError: there can be no history.
        """

    def forget_cluster(self, cluster: str) -> int:
        """Delete what a file on this machine has of a cluster that is gone; returns how many trainings.

        Raises:
            CommandError: the file cannot be used.
        """


def installed_history() -> History:
    """The history.

    Raises:
        CommandError: no distribution brings one, or one that does not fit.
    """
    for point in entry_points(group=_GROUP):
        return _loaded(point)
    raise CommandError("the history is not installed: pip install 'trainer-operator[dashboard]'")


def _loaded(point: EntryPoint) -> History:
    try:
        check_entry_point(point)
        history: History = point.load()()
    except (OtherReleaseError, ImportError, AttributeError) as error:
        raise CommandError(f"the history cannot be loaded: {error}") from error
    return history


def recorder_program(kubeconfig: Path) -> RecorderProgram | None:
    """What records the cluster of this kubeconfig on a laptop; None where no history is installed. Blocks."""
    return installed_history().recorder_program(kubeconfig) if entry_points(group=_GROUP) else None


async def newest_of_history(
    cluster: ConnectedCluster, name: str, namespace: str, uid: str | None = None
) -> PastTraining | None:
    """The newest training of this name on a cluster, if it has this uid; None where nothing was recorded."""
    identity = await identity_of(cluster.client)

    def find() -> PastTraining | None:
        return installed_history().newest(name, namespace, identity, uid) if entry_points(group=_GROUP) else None

    return await run_sync(find)


def forget_cluster(cluster: str) -> int:
    """Delete what was recorded on this machine of a cluster that is gone; returns how many trainings. Blocks."""
    return installed_history().forget_cluster(cluster) if cluster and entry_points(group=_GROUP) else 0
