"""Whether what collected the metrics of an Experiment is needed here, and what takes its place."""

from __future__ import annotations

from typing import Final

from trainer.kube.objects import mapping_at
from trainer.progress.lines.plain_lines import PlainLines
from trainer_v1_jobs.katib.experiment import ExperimentSpec
from trainer_v1_jobs.katib.findings import Findings

_REPORT: Final = "report(eval_metrics={{{metric!r}: value}}), docs/progress.md"
_REMEDIES: Final = {
    "File": "is left out: nobody reads files of pods; print the lines, or call ",
    "TensorFlowEvent": "is left out: nobody reads event files; add the TrainJobCallback of the framework, or call ",
    "PrometheusMetric": "is left out: nobody asks pods for metrics; call ",
    "Custom": "is left out: pods get no collector; call ",
    "Push": "is left out: there is no database of Katib; in place of its report_metrics call ",
    "None": "is left out: a trial without a value has failed; call ",
}
_LINE: Final = b"2026-01-01T00:00:00.000000000Z %s=0.5\n"


def check_metrics(spec: ExperimentSpec, findings: Findings) -> None:
    """Name what nobody collects any more."""
    path, collection = "spec.metricsCollectorSpec", spec.metrics_collector_spec
    metric = spec.objective.objective_metric_name
    call = _REPORT.format(metric=metric)
    collector = collection.collector if collection is not None else None
    kind = (collector.kind if collector is not None else None) or "StdOut"
    if kind != "StdOut":
        findings.lose(f"{path}.collector.kind", f"{_REMEDIES[kind]}{call}")
    elif collection is not None and mapping_at(collection.source, "filter").get("metricsFormat"):
        rule = (
            f"is left out: lines such as Epoch 3/10 loss=0.5 are read, if their names are usual; else call {call}; "
            "trainer metrics shows what has been read"
        )
        findings.lose(f"{path}.source.filter", rule)
    elif not is_understood(metric):
        rule = f"is no name that is found in lines such as {metric}=0.5, which Katib read: call {call}"
        findings.lose("spec.objective.objectiveMetricName", rule)


def is_understood(metric: str) -> bool:
    """Whether the manager finds a metric in the lines that Katib reads by default."""
    found = PlainLines().read(_LINE % metric.encode())
    return any(metric in {**(each.message.train_metrics or {}), **(each.message.eval_metrics or {})} for each in found)
