"""Exposition: all series of a registry as the text that Prometheus scrapes.

`_created` series, which double the number of counters and histograms and mean little to Prometheus, are left out here
and not by prometheus_client's switch, which is process-wide and so belongs to the application.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from trainer.kube.metrics import Metrics


class ProcessSeries(Collector):
    """`process_*`: CPU, memory, start time and open files of this process; values are read when they are scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._collector: ProcessCollector | None = None
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The present values; reads files in /proc."""
        if self._collector is None:
            # Not in the constructor: it reads a file, and constructors run on the event loop.
            self._collector = ProcessCollector(registry=None)
        return self._collector.collect()


class Exposition(Collector):
    """Renders the metrics of one process or manager, those of the process itself included."""

    def __init__(self, metrics: Metrics) -> None:
        metrics.series(ProcessSeries)
        self._registry = metrics.registry

    def collect(self) -> Iterator[Metric]:
        """All series but the `_created` ones."""
        for metric in self._registry.collect():
            created = f"{metric.name}_created"
            metric.samples = [sample for sample in metric.samples if sample.name != created]
            yield metric

    def render(self, accept: str) -> tuple[bytes, str]:
        """The text and its Content-Type, in the format that an Accept header asks for.

        It takes milliseconds for a thousand series and reads files: call it in a thread.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self), content_type
