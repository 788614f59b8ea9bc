"""The phases and their plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.framework.samples import runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType, NodeScale
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.extension_points import Plugin, Watch
from trainer.framework.plugin_api.reports import Outcome, PodProblem, StatusCondition, StatusReport
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins.jobset import JobSetPlugin


class Policy:
    """Serves plain runtimes and jax ones, and notes that it ran."""

    name = "policy"
    ml_policy_sources = frozenset({"jax"})

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `EnforceMLPolicy`."""
        info.labels["phases"] = info.labels.get("phases", "") + "m"


class Gang:
    """Serves coscheduling."""

    name = "gang"
    pod_group_policy_sources = frozenset({"coscheduling"})

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `EnforcePodGroupPolicy`."""
        info.labels["phases"] = info.labels.get("phases", "") + "g"


class Network:
    """Notes that it ran."""

    name = "network"

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `PodNetwork`."""
        info.labels["phases"] = info.labels.get("phases", "") + "n"


class Builder:
    """Builds a ConfigMap that tells which phases ran before."""

    name = "builder"

    def watches(self) -> Iterable[Watch]:
        """See `WatchExtension`."""
        return [Watch(CONFIG_MAPS)]

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """See `ComponentBuilder`."""
        metadata = {"name": "phases", "namespace": "default"}
        data = {"phases": info.labels["phases"] + "b"}
        yield Component(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


class Picky:
    """Refuses everything."""

    name = "picky"

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
        """See `CustomValidation`."""
        yield FieldError("spec.suspend", "is wrong")
        yield FieldError("spec.labels", "are wrong")


class Unprepared:
    """Raises for what validation refuses."""

    name = "unprepared"
    ml_policy_sources: frozenset[str] = frozenset()

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `EnforceMLPolicy`."""
        raise LookupError("oh")


class Ending:
    """Reports an end and counts Jobs."""

    def __init__(self, name: str, outcome: Outcome | None) -> None:
        self.name = name
        self._outcome = outcome

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """See `TerminalCondition`."""
        return self._outcome


class OtherEnding(Ending):
    """A second one."""


@pytest.mark.parametrize(
    "plugins", [(Builder(), Gang(), Network(), Policy()), (Network(), Policy(), Builder(), Gang())]
)
def test_phases_have_a_fixed_order(plugins: tuple[Plugin, ...]) -> None:
    """Build runs EnforceMLPolicy, EnforcePodGroupPolicy, PodNetwork and ComponentBuilder, in any registry."""
    pipeline = Pipeline(Registry(plugins))
    (built,) = pipeline.build(train_job(), runtime())
    assert (built.object["data"], built.plugin) == ({"phases": "mgnb"}, "builder")
    assert pipeline.watches() == [Watch(CONFIG_MAPS)]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"policy": {"mpi": {}}}, "spec.mlPolicy.mpi", id="mpi"),
        pytest.param({"podGroupPolicy": {"coscheduling": {}}}, "spec.podGroupPolicy.coscheduling", id="coscheduling"),
    ],
)
def test_a_policy_without_plugin_is_refused(spec: Any, path: str) -> None:
    """A policy that nobody serves would be ignored, so it is refused."""
    with pytest.raises(BuildError) as caught:
        Pipeline(Registry([Policy()])).build(train_job(), runtime(**spec))
    assert str(caught.value) == (
        f"ClusterTrainingRuntime/blueprint {path}: "
        "Forbidden: no plugin of this controller manager serves it; install one, or use another runtime"
    )


def test_validation() -> None:
    """Admission and build find the same errors, in a fixed order, and build nothing of what they refuse."""
    pipeline = Pipeline(Registry([Picky(), Unprepared()]))
    errors = pipeline.review(train_job(), runtime()).errors
    assert [str(error) for error in errors] == ["spec.labels: are wrong", "spec.suspend: is wrong"]
    with pytest.raises(BuildError) as caught:
        pipeline.build(train_job(), runtime())
    assert caught.value.errors == errors


def test_a_failure_outweighs_a_completion() -> None:
    """When plugins disagree about the end, the TrainJob has failed."""
    complete = Outcome(ConditionType.COMPLETE, "r", "m")
    failed = Outcome(ConditionType.FAILED, "r", "m")
    assert Pipeline(Registry([Ending("a", complete), OtherEnding("b", failed)])).outcome(train_job()) == (failed, [])
    assert Pipeline(Registry([Ending("a", complete), OtherEnding("b", None)])).outcome(train_job()) == (complete, [])
    assert Pipeline(Registry([Ending("a", None)])).outcome(train_job()) == (None, [])


SCALE = NodeScale(nodes=1, min_nodes=1, max_nodes=2, selector="a=b")


class Reporter:
    """Reports what it was made with."""

    condition_types = frozenset({"acme.com/Verified", "acme.com/Other"})

    def __init__(self, report: StatusReport) -> None:
        self.name = "reporter"
        self._report = report

    def train_job_status(self, train_job: TrainJob) -> StatusReport:
        """See `TrainJobStatus`."""
        return self._report


class Counter(Reporter):
    """Counts child Jobs."""

    condition_types = frozenset({"acme.com/Counted"})

    def __init__(self, report: StatusReport) -> None:
        super().__init__(report)
        self.name = "counter"


class Broken:
    """Raises when it is called."""

    name = "broken"
    condition_types = frozenset({"acme.com/Broken"})

    def train_job_status(self, train_job: TrainJob) -> StatusReport:
        """See `TrainJobStatus`."""
        raise LookupError("oh")


def test_status_of_plugins() -> None:
    """Reports are merged; the error of a plugin names it and hides no other's report."""
    verified = StatusCondition("acme.com/Verified", True, "Fine")
    waiting = PodProblem(ConditionType.PENDING, "Unschedulable", "1 pod waits", str)
    restarting = PodProblem(ConditionType.RESTARTING, "Again", "1 pod failed", str)
    counter = Counter(StatusReport([], SCALE, [restarting]))
    pipeline = Pipeline(Registry([Broken(), counter, Reporter(StatusReport(None, None, [waiting], [verified]))]))

    assert pipeline.condition_types == {
        "acme.com/Verified",
        "acme.com/Other",
        "acme.com/Broken",
        "acme.com/Counted",
    }
    report, (error,) = pipeline.status(train_job())
    assert [each.headline for each in report.problems] == [restarting.headline, waiting.headline]
    assert (report.jobs, report.scale, report.conditions) == ([], SCALE, (verified,))
    assert str(error) == "Internal error: plugin broken failed in train_job_status: LookupError: oh"
    assert Pipeline(Registry()).status(train_job()) == (StatusReport(), [])


def test_a_report_that_breaks_off() -> None:
    """What a plugin has reported before one of its generators raises is used."""
    waiting = PodProblem(ConditionType.PENDING, "Unschedulable", "1 pod waits", str)
    verified = StatusCondition("acme.com/Counted", True, "Fine")

    def broken() -> Iterator[PodProblem]:
        yield waiting
        raise LookupError("oh")

    counter = Counter(StatusReport([], SCALE, broken(), [verified]))
    merged, (error,) = Pipeline(Registry([counter])).status(train_job())
    assert merged == StatusReport([], SCALE, conditions=(verified,))
    assert str(error) == "Internal error: plugin counter failed in train_job_status: LookupError: oh"


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        pytest.param(StatusReport(jobs=[]), "another plugin counts the child Jobs already", id="jobs"),
        pytest.param(
            StatusReport(scale=SCALE),
            "another plugin counts the nodes already",
            id="nodes",
        ),
        pytest.param(
            StatusReport(conditions=[StatusCondition("Complete", True, "Fine")]),
            "condition Complete is not among its condition_types",
            id="condition",
        ),
    ],
)
def test_reports_that_contradict(report: StatusReport, problem: str) -> None:
    """What cannot be written is dropped, and the rest of the status stays."""
    counter = Counter(StatusReport([], SCALE))
    merged, (error,) = Pipeline(Registry([counter, Reporter(report)])).status(train_job())
    assert merged == StatusReport([], SCALE)
    assert problem in str(error)


class Eater:
    """A builder that takes what it builds from away; the order in which builders run does not tell it not to."""

    name = "eater"

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """See `ComponentBuilder`."""
        names = " ".join(info.pod_sets.pop().name for _ in range(len(info.pod_sets)))
        metadata = {"name": "names", "namespace": train_job.metadata.namespace}
        yield Component(
            CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"names": names}}
        )


def test_steps_do_not_change_each_other() -> None:
    """What is built after one step leaves no trace in what is built after the next."""
    pipeline = Pipeline(Registry([Eater()]))

    seen = [component for _, components in pipeline.steps(train_job(), runtime()) for component in components]

    assert len(seen) > 1
    assert {component.object["data"]["names"] for component in seen} == {"node"}


class Head:
    """Tells the training container where the first node is."""

    name = "head"
    ml_policy_sources: frozenset[str] = frozenset()

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `EnforceMLPolicy`."""
        info.main_container.set_env([{"name": "HEAD", "value": info.head_address()}])


@pytest.mark.parametrize(
    ("domain", "network", "head"),
    [
        pytest.param(None, {}, "demo-node-0-0.demo", id="short"),
        pytest.param(None, {"subdomain": "ring"}, "demo-node-0-0.ring", id="subdomain"),
        pytest.param("k8s.acme.com", {"subdomain": "ring"}, "demo-node-0-0.ring.default.svc.k8s.acme.com", id="both"),
    ],
)
def test_names_of_pods(domain: str | None, network: Object, head: str) -> None:
    """They are short, or those of the cluster's domain."""
    pipeline = Pipeline(Registry([Head(), JobSetPlugin(StaticReader())]), cluster_domain=domain)
    (jobset,) = pipeline.build(train_job(), runtime(jobset={"network": network}))
    job = jobset.object["spec"]["replicatedJobs"][0]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "HEAD", "value": head}]


def test_the_environment_of_the_train_job_wins() -> None:
    """A variable that a policy sets has the value of the TrainJob if that sets it, too."""
    pipeline = Pipeline(Registry([Head(), JobSetPlugin(StaticReader())]))
    (jobset,) = pipeline.build(train_job(trainer={"env": [{"name": "HEAD", "value": "mine"}]}), runtime())
    job = jobset.object["spec"]["replicatedJobs"][0]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "HEAD", "value": "mine"}]
