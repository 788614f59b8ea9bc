"""The series that dashboards and alerts may ask for: ours, those made by recording rules, and few of others."""

from __future__ import annotations

import re

from hack.reference.metrics_catalogue import catalogue
from tests.config.kustomized import of_kind, rendered
from tests.config.promql import question
from trainer.kube.objects import Object

TARGET_LABELS = frozenset({"container", "endpoint", "instance", "job", "namespace", "pod", "service"})
"""What Prometheus Operator adds to each series."""
OTHERS = {
    "up": frozenset[str](),
    "ALERTS": frozenset({"alertname", "alertstate", "severity"}),
    "apiserver_admission_webhook_rejection_count": frozenset(
        {"error_type", "name", "operation", "rejection_code", "type"}
    ),
}
"""Series of Prometheus itself and of kube-apiserver, with their labels."""
DETAILED = re.compile(r"rest_client_(?!requests_total|request_duration_seconds)")
"""What a client measures only where that is switched on, which the manager does not do."""


def groups() -> list[Object]:
    """All groups of rules of config/prometheus."""
    return [group for obj in of_kind(rendered("prometheus"), "PrometheusRule") for group in obj["spec"]["groups"]]


def rules() -> list[Object]:
    """All of their rules."""
    return [rule for group in groups() for rule in group["rules"]]


def known_series() -> dict[str, frozenset[str]]:
    """Labels by name of the series."""
    ours = {
        series: frozenset(metric.labels) | TARGET_LABELS | ({"le"} if series.endswith("_bucket") else set())
        for metric in catalogue()
        for series in metric.series
        if not DETAILED.match(series)
    }
    recorded = {rule["record"]: frozenset(_labels_of_record(rule["record"])) for rule in rules() if "record" in rule}
    return ours | recorded | {name: labels | TARGET_LABELS for name, labels in OTHERS.items()}


def _labels_of_record(name: str) -> set[str]:
    """The level of a recorded series names its labels, joined by underscores."""
    level = name.partition(":")[0]
    (rule,) = (rule for rule in rules() if rule.get("record") == name)
    labels = {label for label in question(rule["expr"]).grouping if label in level}
    assert set("_".join(sorted(labels)).split("_")) == set(level.split("_")), name
    return labels


def problems(expression: str) -> list[str]:
    """What an expression asks for that is not there."""
    asked, known = question(expression), known_series()
    found = [f"no metric {name}" for name in asked.metrics if name not in known]
    for name, labels in asked.metrics.items():
        found += [f"{name} has no label {label}" for label in sorted(labels - known.get(name, labels))]
    everything = frozenset[str]().union(*(known.get(name, frozenset()) for name in asked.metrics))
    return found + [f"nothing has label {label}" for label in sorted(asked.grouping - everything)]
