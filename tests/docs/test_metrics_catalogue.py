"""The catalogue is complete, and what it lists is as Prometheus wants it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable

import anyio
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import trainer
import trainer_sweeps.controllers
from hack.reference.metrics_catalogue import GROUPS, catalogue
from tests.configurations import bare
from tests.framework.samples import runtime_object, train_job_object
from tests.promtool import needs_promtool, promtool
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.exposition import Exposition
from trainer.manager import build_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle

_BY_HAND = re.compile(r"controller_runtime_|workqueue_|rest_client_|leader_election_|certwatcher_|process_")
"""Names that others have chosen."""

_ODD = 'a"b\\c\nd'
"""No name of an object, but labels may be anything."""

_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


async def _exercised() -> Metrics:
    clock = ManualClock()
    kinds = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)
    odd = runtime_object() | {"metadata": {"name": _ODD}}
    client = FakeClient(runtime_object(), odd, resources=kinds, clock=clock)
    manager = build_manager(client, bare(), clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await client.create(TRAIN_JOBS, train_job_object())
        await client.create(TRAIN_JOBS, train_job_object("odd", runtimeRef={"name": _ODD}))
        await settle()
        for group in GROUPS:
            manager.metrics.series(group)
        tasks.cancel_scope.cancel()
    return manager.metrics


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    """Those of a manager that has seen a TrainJob, with every group registered."""
    return anyio.run(_exercised)


def test_every_group_of_series_is_listed() -> None:
    """The catalogue has every group of series of the manager."""
    found = set()
    for module in (
        *pkgutil.walk_packages(trainer.__path__, "trainer."),
        *pkgutil.walk_packages(trainer_sweeps.controllers.__path__, "trainer_sweeps.controllers."),
    ):
        if not module.name.startswith(("trainer.cli", "trainer.progress.callbacks", "trainer.checkpoints.frameworks")):
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            found |= {member for name, member in members if re.fullmatch(r"\w+Series", name)}
    assert found == set(GROUPS)


def test_descriptions() -> None:
    """Names are unique and well-formed, everything has a help text, and units are at the end."""
    descriptions = catalogue()
    names = [description.name for description in descriptions]
    assert len(names) == len(set(names))
    for description in descriptions:
        assert description.help.endswith("."), description
        assert "le" not in description.labels
        if description.type == "counter":
            assert description.name.endswith("_total"), description
        if description.type == "histogram":
            assert description.name.endswith(("_seconds", "_bytes")), description
        if not _BY_HAND.match(description.name):
            assert description.name.startswith("trainer_")


@pytest.mark.parametrize(
    ("name", "kind", "labels"),
    [
        ("trainer_trainjobs", "gauge", ("namespace", "runtime", "framework", "state")),
        ("trainer_trainjob_status_pending_reason", "gauge", ("namespace", "reason")),
        ("trainer_trainjob_info", "gauge", ("namespace", "trainjob", "runtime", "framework", "state")),
        ("trainer_trainjobs_created_total", "counter", ("namespace", "runtime", "framework")),
        ("trainer_trainjobs_completed_total", "counter", ("namespace", "runtime", "framework")),
        ("trainer_trainjobs_failed_total", "counter", ("namespace", "runtime", "framework", "reason")),
        ("trainer_trainjob_time_to_jobset_seconds", "histogram", ("framework",)),
        ("trainer_trainjob_queue_seconds", "histogram", ("framework",)),
        ("trainer_trainjob_run_seconds", "histogram", ("framework", "result")),
        ("trainer_admission_seconds", "histogram", ("kind", "operation")),
        ("trainer_admission_refusals_total", "counter", ("kind", "operation")),
        ("trainer_plugin_build_seconds", "histogram", ("plugin", "phase")),
        ("trainer_plugin_errors_total", "counter", ("plugin", "phase")),
        ("trainer_build_info", "gauge", ("version", "python_version", "api_version")),
        ("workqueue_depth", "gauge", ("name", "controller", "priority")),
    ],
)
def test_names_and_labels_that_dashboards_rely_on(name: str, kind: str, labels: tuple[str, ...]) -> None:
    """A change of these breaks what people have built on them."""
    (found,) = [description for description in catalogue() if description.name == name]
    assert (found.type, found.labels) == (kind, labels)


def test_a_manager_exposes_nothing_else(metrics: Metrics) -> None:
    """Whatever a manager shows is described, with those labels."""
    described = {series: description.labels for description in catalogue() for series in description.series}
    samples = [sample for family in Exposition(metrics).collect() for sample in family.samples]
    assert {sample.name for sample in samples} <= set(described)
    for sample in samples:
        assert set(sample.labels) - {"le"} == set(described[sample.name]), sample
    assert {sample.name for sample in samples} >= {
        "trainer_trainjobs",
        "trainer_plugin_errors_total",
        "trainer_plugin_build_seconds_bucket",
        "trainer_build_info",
    }
    assert _ODD in {sample.labels.get("runtime") for sample in samples}


@needs_promtool
def test_promtool_has_nothing_to_say(metrics: Metrics) -> None:
    """`promtool check metrics` accepts what is exposed without a warning."""
    text, _ = Exposition(metrics).render("")
    assert promtool("check", "metrics", text=text.decode()) == (0, "")


def test_openmetrics(metrics: Metrics) -> None:
    """OpenMetrics is served on request, passes its strict parser and has the same families."""
    text, content_type = Exposition(metrics).render(_OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    parse: Callable[[str], Iterable[Metric]] = text_string_to_metric_families
    families = {family.name: family.type for family in parse(text.decode())}
    assert families == {family.name: family.type for family in Exposition(metrics).collect()}
