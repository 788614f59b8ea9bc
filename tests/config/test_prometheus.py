"""Alerts and dashboards hold from the first event, in a real Prometheus that sees nothing of it happen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.config.series import groups
from tests.config.test_dashboards import FILES, dashboard, filled_in
from tests.controllers.conftest import Cluster
from tests.framework.samples import runtime_object, train_job_object
from tests.prometheus import Prometheus, exposed, needs_prometheus, poll
from trainer.api.trainjob import TRAIN_JOBS
from trainer.controllers.metrics.series import JobLabels, TrainJobSeries
from trainer.kube.metrics import Metrics
from trainer.kube.objects import name_of
from trainer_kube_testing import settle

pytestmark = needs_prometheus

FAILED, COMPLETED, GOING_ON = 6, 2, 4
_ENDS = {
    "Completed": {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "completed"},
    "Failed": {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "a job failed"},
}


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    """Those of a manager that has just been started, and under which twelve TrainJobs have run and eight ended."""
    return anyio.run(_twelve_trainjobs)


async def _twelve_trainjobs() -> Metrics:
    cluster = Cluster()
    obj = runtime_object()
    labels = {"trainer.kubeflow.org/framework": "torch"}
    cluster.client.add(obj | {"metadata": obj["metadata"] | {"labels": labels}})
    ends = iter(["Failed"] * FAILED + ["Completed"] * COMPLETED)
    async with cluster.managed():
        for number in range(FAILED + COMPLETED + GOING_ON):
            await cluster.client.create(TRAIN_JOBS, train_job_object(f"job-{number}"))
        await settle()
        for state in ("", "end"):
            await cluster.clock.advance(10)
            for jobset in sorted(cluster.jobsets, key=name_of):
                end = next(ends, "") if state else ""
                counts = {"ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
                status = {
                    "restarts": 0,
                    "replicatedJobsStatus": [{"name": "node"} | counts],
                    "conditions": [_ENDS[end]] if end else [],
                    "terminalState": end,
                }
                await cluster.put(jobset | {"status": status})
    return cluster.metrics


@pytest.fixture(scope="module")
def prometheus(metrics: Metrics, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has scraped them, and evaluated its rules, for the first time when all was over."""
    directory = tmp_path_factory.mktemp("prometheus")
    with exposed(metrics) as target, Prometheus.scraping(target, groups(), directory) as running:
        poll(lambda: running.query("namespace_runtime:trainer_trainjobs_failed:increase1h"), "recorded series")
        yield running


def test_the_first_failures_alert(prometheus: Prometheus) -> None:
    """Most of the TrainJobs that have ended have failed; nothing else is wrong, and the leader is not shown here."""
    poll(lambda: prometheus.firing() == [("TrainerTrainJobsFail", "warning")], "the alert alone")


def test_all_rules_can_be_evaluated(prometheus: Prometheus) -> None:
    """No operator finds labels that do not match, which a check of the syntax does not show."""
    poll(lambda: not [name for name, error in prometheus.broken_rules() if error == "unknown"], "an evaluation of all")
    assert prometheus.broken_rules() == []


def panels() -> Iterator[tuple[str, str, str]]:
    """Dashboard, title and expression of each query."""
    for name in FILES:
        for panel in dashboard(name)["panels"]:
            for target in panel.get("targets", ()):
                yield name.removesuffix(".json"), panel["title"], filled_in(target["expr"])


def test_no_panel_shows_nan(prometheus: Prometheus) -> None:
    """Whatever has not happened yet is empty or 0."""
    wrong = [
        (dashboard, title)
        for dashboard, title, expression in panels()
        if any(math.isnan(value) for _, value in prometheus.query(expression))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        pytest.param("Completed of those that ended", [0.25], id="share"),
        pytest.param("Running", [GOING_ON], id="state"),
        pytest.param("Created, completed and failed in an hour", [12, COMPLETED, FAILED], id="per-hour"),
        pytest.param("Failures by reason", [FAILED], id="failures"),
        pytest.param("Completed by runtime", [COMPLETED], id="completions"),
        pytest.param("Names", [1] * 12, id="names"),
        pytest.param("Waiting until it runs", [7.5, 9.5], id="queue"),
        pytest.param("Run time", [5, 5, 9, 9], id="run-time"),
        pytest.param("Until the JobSet is there", [0.005], id="jobset"),
    ],
)
def test_panels_show_what_has_happened(prometheus: Prometheus, title: str, expected: list[float]) -> None:
    """Before the first scrape: the numbers are right although no increase was ever scraped."""
    expressions = [expression for name, each, expression in panels() if (name, each) == ("trainer-trainjobs", title)]

    def is_shown() -> bool:
        values = [value for expression in expressions for _, value in prometheus.query(expression)]
        return values == [pytest.approx(number, rel=0.1) for number in expected]

    poll(is_shown, f"{expected} in {title}")


def test_what_follows_is_counted_once(tmp_path: Path) -> None:
    """A failure that Prometheus sees happen adds one to those that it has not."""
    metrics = anyio.run(_twelve_trainjobs)
    recorded = "namespace_runtime:trainer_trainjobs_failed:increase1h"
    with exposed(metrics) as target, Prometheus.scraping(target, groups(), tmp_path) as running:
        poll(lambda: running.query(f"{recorded} == {FAILED}"), "the failures before the first scrape")
        failed = metrics.series(TrainJobSeries).failed
        failed.labels(*JobLabels("default", "blueprint", "torch"), "FailedJobs").inc()
        poll(lambda: running.query(f"{recorded} > {FAILED}"), "another failure")
        assert [value for _, value in running.query(recorded)] == [FAILED + 1]


def test_a_manager_without_trainjobs(tmp_path: Path) -> None:
    """No alert fires, and no panel shows NaN."""
    with (
        exposed(anyio.run(_nothing)) as target,
        Prometheus.scraping(target, groups(), tmp_path) as running,
    ):
        poll(lambda: running.query("process_start_time_seconds"), "a scrape")
        wrong = [title for _, title, text in panels() if any(math.isnan(value) for _, value in running.query(text))]
        assert wrong == []
        assert running.firing() == []


async def _nothing() -> Metrics:
    cluster = Cluster()
    async with cluster.managed():
        return cluster.metrics
