"""Samples of metrics on standard output: as charts, JSON or CSV, all at once or as they come."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

from rich.console import Console
from rich.text import Text

from trainer.cli.console import printable
from trainer.cli.jobs.progress import short_value
from trainer.cli.metrics.charts import charts
from trainer.kube.objects import Object
from trainer.progress.samples import MetricId, Sample


class MetricsFormat(StrEnum):
    """Values of `--output`."""

    CHART = "chart"
    JSON = "json"
    CSV = "csv"


class SamplePrinter:
    """Prints the samples of one TrainJob."""

    def __init__(self, form: MetricsFormat, console: Console) -> None:
        self._form = form
        self._console = console
        self._rows = csv.writer(console.file, lineterminator="\n")
        self._has_header = False

    def show(self, series: Mapping[MetricId, Sequence[Sample]], origin: Object) -> None:
        """Print all samples; JSON begins with where they are from."""
        if self._form is MetricsFormat.JSON:
            metrics = [
                {"kind": metric.kind, "name": metric.name, "samples": [_values(sample) for sample in samples]}
                for metric, samples in series.items()
            ]
            self._console.file.write(json.dumps(origin | {"metrics": metrics}, indent=2, ensure_ascii=False) + "\n")
        elif self._form is MetricsFormat.CSV:
            for samples in series.values():
                self.print(samples)
        else:
            for line in self.charts(series):
                self._console.print(line)

    def charts(self, series: Mapping[MetricId, Sequence[Sample]]) -> list[Text]:
        """The lines of charts that fit the console."""
        return charts(series, self._console.width, ascii_only=self._console.options.ascii_only)

    def print(self, samples: Sequence[Sample]) -> None:
        """Print samples one by one: as CSV rows, JSON lines, or text."""
        file = self._console.file
        if self._form is MetricsFormat.CSV:
            if not self._has_header:
                self._rows.writerow(("time", "kind", "name", "value", "step", "epoch"))
                self._has_header = True
            self._rows.writerows(
                (str(time), metric.kind, metric.name, value, step, epoch)
                for metric, time, value, step, epoch in samples
            )
            file.flush()
        elif self._form is MetricsFormat.JSON:
            for sample in samples:
                identity = {"kind": sample.metric.kind, "name": sample.metric.name}
                file.write(json.dumps(identity | _values(sample), ensure_ascii=False) + "\n")
            file.flush()
        else:
            for metric, time, value, step, _ in samples:
                at_step = f"step {step}  " if step is not None else ""
                self._console.print(
                    Text(f"{time.second}  {at_step}{metric.kind} {printable(metric.name)} {short_value(value)}")
                )


def _values(sample: Sample) -> Object:
    return {"time": str(sample.time), "step": sample.step, "epoch": sample.epoch, "value": float(sample.value)}
