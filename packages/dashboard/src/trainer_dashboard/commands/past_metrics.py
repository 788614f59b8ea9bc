"""The metrics of a TrainJob from the history, where the cluster has its log no more."""

from __future__ import annotations

from rich.console import Console

from trainer.cli.errors import CommandError
from trainer.cli.metrics.printing import MetricsFormat, SamplePrinter
from trainer.kube.podlogs.instant import Instant
from trainer.progress.curves import Curve
from trainer.progress.samples import MetricId, Sample
from trainer_dashboard.commands.past import say_gone
from trainer_dashboard.history.queries import History, TrainingRecord


def print_past_metrics(console: Console, form: MetricsFormat, history: History, record: TrainingRecord) -> None:
    """Print the samples that were kept; blocks. Those with steps have no epochs, and values are as precise as a float.

    Raises:
        CommandError: there are none.
    """
    curves = history.curves(record.uid).by_metric
    if not curves:
        raise CommandError(f"the history has no metrics of TrainJob {record.name} ({record.uid[:8]})")
    say_gone(record)
    series = {metric: _samples(metric, curve) for metric, curve in curves.items()}
    origin = {"name": record.name, "namespace": record.namespace, "pod": None, "container": None}
    SamplePrinter(form, console).show(series, origin)


def _samples(metric: MetricId, curve: Curve) -> list[Sample]:
    return [
        Sample(metric, _instant(time), f"{value:.15g}", _count(step), _count(epoch))
        for time, step, epoch, value in curve.samples()
    ]


def _count(stored: float) -> int | None:
    return None if stored < 0 else int(stored)


def _instant(seconds: float) -> Instant:
    """To the microsecond, which is what a float has of a time of today."""
    whole, micros = divmod(round(seconds * 1e6), 1_000_000)
    return Instant(whole, micros * 1000)
