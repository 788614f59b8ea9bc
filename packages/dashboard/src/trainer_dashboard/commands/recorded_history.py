"""The history, for `trainer get`, `logs` and `metrics`: the entry point of the group `trainer.history`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from trainer.cli.console import note
from trainer.cli.logs.choice import LogRequest
from trainer.cli.metrics.printing import MetricsFormat
from trainer.cli.past import RecorderProgram
from trainer.kube.objects import Object
from trainer_dashboard.commands.history_database import RECORDING, database_of, open_history
from trainer_dashboard.commands.past import past_details, past_object, past_table
from trainer_dashboard.commands.past_logs import print_past_logs
from trainer_dashboard.commands.past_metrics import print_past_metrics
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.forgetting import forget_cluster
from trainer_dashboard.history.queries import PAGE, Filter, History, TrainingRecord, only

_RETAIN: Final = "90d"
_RETAIN_SIZE: Final = "256Mi"
"""What `trainer up` keeps of the trainings of a laptop."""


class RecordedTraining:
    """A training of the history; `trainer.cli.past` documents its methods."""

    def __init__(self, history: History, record: TrainingRecord) -> None:
        self._history = history
        self._record = record

    def print_details(self, console: Console, encode: Callable[[Object], str] | None) -> None:
        """Print its row, conditions and events, or its TrainJob."""
        if encode is None:
            for line in past_details(self._history, self._record, console):
                console.print(line)
            return
        kept = self._history.document(self._record.uid, "trainjob")
        console.file.write(encode(kept or past_object(self._record)))

    def print_logs(self, console: Console, request: LogRequest) -> None:
        """Print what was kept of the logs that are named."""
        print_past_logs(console, request, self._history, self._record)

    def print_metrics(self, console: Console, form: MetricsFormat) -> None:
        """Print the samples that were kept."""
        print_past_metrics(console, form, self._history, self._record)


class RecordedHistory:
    """The trainings of the database of the user, or of TRAINER_HISTORY_DATABASE."""

    def newest(self, name: str, namespace: str, cluster: str, uid: str | None = None) -> RecordedTraining | None:
        """The newest training of this name, if it has this uid; None where nothing was recorded."""
        try:
            history = open_history()
            found = history.newest(name, namespace, cluster)
        except HistoryError:
            return None
        return RecordedTraining(history, found) if found is not None and uid in {None, found.uid} else None

    def training(self, name: str, namespace: str, cluster: str) -> RecordedTraining:
        """The newest training of this name, in a namespace or in all; raises HistoryError where there is none."""
        history = open_history()
        return RecordedTraining(history, history.training(f"{namespace}/{name}" if namespace else name, cluster))

    def print_list(
        self, console: Console, namespace: str, cluster: str, encode: Callable[[Object], str] | None
    ) -> None:
        """Print the newest trainings of a namespace or of all; raises HistoryError where there is no history."""
        which = Filter(cluster=cluster or None, namespaces=only(namespace))
        records = open_history().trainings(which, limit=PAGE)
        if encode is not None:
            console.file.write(encode({"items": [past_object(record) for record in records]}))
            return
        for line in past_table(records, console) if records else ():
            console.print(line)
        if not records:
            note("the history has no training of this cluster" if cluster else "the history has no training")
        if len(records) == PAGE:
            note("older ones: trainer history list --limit 1000")

    def forget_cluster(self, cluster: str) -> int:
        """Delete it from a file of SQLite; a server, which others may read as well, keeps it."""
        database = database_of(None)
        count = database.forget_cluster(cluster, partial(forget_cluster, cluster=cluster))
        database.close()
        return count

    def recorder_program(self, kubeconfig: Path) -> RecorderProgram:
        """`trainer history record`, which keeps less than for a team.

        The database is brought to the present version here: what that needs stays out of the memory of the recorder.
        """
        database = database_of(None)
        database.migrate()
        database.close()
        command = [sys.executable, "-m", "trainer.cli", "history", "record", "--kubeconfig", str(kubeconfig)]
        return RecorderProgram([*command, "--retain", _RETAIN, "--retain-size", _RETAIN_SIZE], ready=RECORDING)
