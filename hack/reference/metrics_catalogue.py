"""The catalogue of the manager's metrics, with help, type and labels, for docs and checks of dashboards."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from trainer.controllers.metrics.disruptions import DisruptionSeries
from trainer.controllers.metrics.series import TrainJobSeries
from trainer.framework.plugin_calls import PluginSeries
from trainer.kube.metrics.caches import CacheSeries
from trainer.kube.metrics.controllers import ControllerSeries, QueueSeries
from trainer.kube.metrics.exposition import ProcessSeries
from trainer.kube.metrics.processes import ElectionSeries, EventSeries, LoopSeries
from trainer.kube.metrics.requests import RequestSeries
from trainer.kube.metrics.servers import CertificateSeries, ExpirySeries, HttpServerSeries, WebhookSeries
from trainer.manager import BuildInfoSeries
from trainer.progress.metrics import ProgressSeries
from trainer.webhooks.handlers import AdmissionSeries
from trainer_sweeps.controllers.metrics import SweepSeries

GROUPS = (
    TrainJobSeries,
    DisruptionSeries,
    PluginSeries,
    AdmissionSeries,
    BuildInfoSeries,
    ProgressSeries,
    SweepSeries,
    ControllerSeries,
    QueueSeries,
    CacheSeries,
    RequestSeries,
    WebhookSeries,
    HttpServerSeries,
    CertificateSeries,
    ExpirySeries,
    ElectionSeries,
    EventSeries,
    LoopSeries,
    ProcessSeries,
)
"""All groups of series, ours first."""


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """One metric, with the names that PromQL uses."""

    name: str
    """With `_total` for counters; histograms have `<name>_bucket`, `<name>_sum` and `<name>_count`."""
    type: str
    """`counter`, `gauge` or `histogram`."""
    help: str
    """One sentence."""
    labels: tuple[str, ...]
    """Without `le` of histograms, and without those that Prometheus adds."""

    @property
    def series(self) -> tuple[str, ...]:
        """Names in PromQL."""
        if self.type == "histogram":
            return tuple(f"{self.name}_{suffix}" for suffix in ("bucket", "sum", "count"))
        return (self.name,)


class _Inventory(CollectorRegistry):
    """A registry that lists its collectors."""

    def __init__(self) -> None:
        super().__init__()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        super().register(collector)
        self.collectors.append(collector)


def catalogue() -> list[MetricDescription]:
    """All metrics that a manager may expose, by group; it reads files of /proc."""
    inventory = _Inventory()
    for group in GROUPS:
        group(inventory)
    return [description for collector in inventory.collectors for description in _descriptions(collector)]


def _descriptions(collector: Collector) -> list[MetricDescription]:
    # ProcessCollector, which has no labels, has no describe().
    families = getattr(collector, "describe", collector.collect)()
    return [
        MetricDescription(
            f"{family.name}_total" if family.type == "counter" else family.name,
            family.type,
            family.documentation,
            _label_names(collector) or _label_names(family),
        )
        for family in families
    ]


def _label_names(described: object) -> tuple[str, ...]:
    """prometheus_client does not publish them."""
    return tuple(getattr(described, "_labelnames", ()))
