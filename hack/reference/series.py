"""The metrics of the manager."""

from __future__ import annotations

from hack.reference.markdown import code, page, prose, table
from hack.reference.metrics_catalogue import MetricDescription, catalogue
from trainer.controllers.metrics.state_counts import NONE
from trainer.kube.metrics.cardinality import LIMIT, OTHER

_SECTIONS = (
    ("trainer_progress_", "Following the logs of trainings"),
    ("trainer_kube_", "The machinery, beyond what controller-runtime shows"),
    ("trainer_", "TrainJobs, plugins and admission"),
    ("controller_runtime_webhook_", "Webhooks, as in controller-runtime"),
    ("controller_runtime_", "Controllers, as in controller-runtime"),
    ("workqueue_", "Work queues, as in client-go"),
    ("rest_client_", "Requests to the API server, as in client-go"),
    ("leader_election_", "Leader election, as in client-go"),
    ("certwatcher_", "Files with certificates, as in controller-runtime"),
    ("process_", "The process"),
)
"""Of the prefixes that fit, the first one counts."""
_FIRST = "TrainJobs, plugins and admission"


def metrics() -> str:
    """The page docs/reference/metrics.md."""
    sections: dict[str, list[MetricDescription]] = {_FIRST: [], **{heading: [] for _, heading in _SECTIONS}}
    for metric in catalogue():
        sections[_section(metric.name)].append(metric)
    blocks = [block for heading, found in sections.items() if found for block in (f"## {heading}", _table(found))]
    return page(
        "Metrics",
        "`/metrics` of each replica, by default HTTPS on port 8443 for those who may get that path: "
        "[operate.md](../operate.md#metrics). A histogram `NAME` is in the series `NAME_bucket`, `NAME_sum` and "
        "`NAME_count`, all times are in seconds.",
        f"A metric whose labels follow from what people create has at most {LIMIT} label sets, which namespaces share; "
        f"what a namespace has beyond its share is counted under {code(OTHER)}. Label {code('runtime')} is "
        f"{code(NONE)} where there is no such runtime, and label {code('framework')} is {code(OTHER)} unless a "
        "ClusterTrainingRuntime names that framework. Series of what is gone are removed after an hour.",
        *blocks,
    )


def _section(name: str) -> str:
    for prefix, heading in _SECTIONS:
        if name.startswith(prefix):
            return heading
    raise ValueError(f"no section for the metric {name}")


def _table(found: list[MetricDescription]) -> str:
    rows = [
        (code(metric.name), metric.type, ", ".join(map(code, metric.labels)), prose(metric.help)) for metric in found
    ]
    return table(("metric", "type", "labels", "what it says"), rows)
