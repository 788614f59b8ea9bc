"""JobSets of elastic trainings: their number of nodes may change while they run."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import NodeScale
from trainer.framework.building.extraction import extract
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component, Revision
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.extension_points import Plugin
from trainer.framework.plugin_api.runtime_info import NodeRange, RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, controller_reference
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.jobset.revision import ELASTIC_JOBSETS, NODE_RANGE, SUSPEND, elastic_job


class Elastic:
    """Makes every training elastic, between two and four nodes."""

    name = "elastic"
    ml_policy_sources: frozenset[str] = frozenset()

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `EnforceMLPolicy`."""
        info.trainer.elastic = NodeRange(2, 4)


@pytest.mark.parametrize(
    ("name", "most", "errors"),
    [
        pytest.param("n" * 48, 10, [], id="fits-the-most"),
        pytest.param(
            "n" * 48,
            11,
            [
                (
                    "metadata.name",
                    (
                        f"is too long by 1: pods get names such as {'n' * 48}-node-0-10-abcde "
                        "when there are 11 of them, of at most 63 characters"
                    ),
                )
            ],
            id="fits-the-present-number-only",
        ),
        pytest.param(
            "demo",
            100_001,
            [
                (
                    "ClusterTrainingRuntime/blueprint spec.mlPolicy",
                    "must be at most 100000, the most pods that a replicated Job can have",
                )
            ],
            id="more-than-kubernetes-runs",
        ),
    ],
)
def test_the_most_nodes_must_be_possible(name: str, most: int, errors: list[tuple[str, str]]) -> None:
    """An elastic training may grow: names and limits are those of its most nodes, which a scale can ask for."""
    job = train_job(name, trainer={"numNodes": 2})
    plugin = JobSetPlugin(StaticReader())
    info = extract(job, runtime(policy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": most}}}))
    found = [error for error in plugin.validate(info, None, job) if isinstance(error, FieldError)]
    assert [(error.field, error.message.split(": ", 2)[2]) for error in found] == errors

    later = extract(job, runtime())
    later.trainer.elastic = NodeRange(2, most)
    with pytest.raises(BuildError) if errors else nullcontext():
        plugin.identify_pod_network(later, job)


def test_a_policy_of_indexes_counts_the_fewest_nodes() -> None:
    """A training that leaves out the number of its nodes starts with the fewest, not with one."""
    job = train_job()
    elastic = {"torch": {"elasticPolicy": {"minNodes": 4, "maxNodes": 8}}}
    limits = {"backoffLimitPerIndex": 1, "maxFailedIndexes": 3}
    info = extract(job, runtime(replicated_job("node", {"name": "trainer", "image": "i"}, job=limits), policy=elastic))
    assert list(JobSetPlugin(StaticReader()).validate(info, None, job)) == []


def component(*, elastic: bool = True, **spec: Any) -> Component:
    """The JobSet of a training beside an initializer."""
    plugins: list[Plugin] = [JobSetPlugin(StaticReader()), *([Elastic()] if elastic else [])]
    blueprint = runtime(replicated_job("initializer"), replicated_job("node"), policy={"numNodes": 2})
    (built,) = Pipeline(Registry(plugins)).build(train_job(**spec), blueprint)
    return built


def stored(built: Component, **status: Any) -> Object:
    """The JobSet as the cluster has it."""
    owned = {"uid": "1", "ownerReferences": [controller_reference(train_job_object())]}
    obj = copy.deepcopy(built.object)
    return obj | {"metadata": obj["metadata"] | owned, "status": status}


def train_job_object() -> Object:
    """The TrainJob that owns the JobSet."""
    return train_job().to_object()


def revision(built: Component, existing: Object) -> Revision | None:
    """What would be applied to the JobSet that exists."""
    assert built.revise is not None
    return built.revise(existing)


def sizes(jobset: Object) -> list[tuple[int, int]]:
    """Parallelism and completions of the replicated Jobs."""
    specs = [job["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]]
    return [(spec["parallelism"], spec["completions"]) for spec in specs]


def test_the_annotation() -> None:
    """The JobSet says which of its Jobs may have how many pods; nobody else makes a training elastic."""
    assert component().object["metadata"]["annotations"] == {NODE_RANGE: "node=2:4"}
    forged = {NODE_RANGE: "node=1:9"}
    assert component(annotations=forged).object["metadata"]["annotations"] == {NODE_RANGE: "node=2:4"}
    assert "annotations" not in component(elastic=False, annotations=forged).object["metadata"]


@pytest.mark.parametrize("text", ["", "node", "node=2", "node=a:b", "2:4", "node=2:4;"])
def test_what_others_wrote(text: str) -> None:
    """An annotation that cannot be read stands for a fixed size."""
    assert elastic_job({"metadata": {"annotations": {NODE_RANGE: text}}}) is None


@pytest.mark.parametrize("nodes", [3, 4])
def test_a_running_training_grows(nodes: int) -> None:
    """Only the size changes, both numbers together; a cluster that does not allow it keeps the JobSet as it is."""
    existing = stored(component())
    changed = component(trainer={"numNodes": nodes, "image": "new"})

    found = revision(changed, existing)

    assert found is not None
    assert found.fallback is not None
    assert sizes(found.object) == [(1, 1), (nodes, nodes)]
    assert found.refused == ()
    assert found.remedy == ELASTIC_JOBSETS
    assert found.fallback.object["spec"] == existing["spec"]
    smaller = copy.deepcopy(found.object["spec"])
    smaller["replicatedJobs"][1]["template"]["spec"] |= {"parallelism": 2, "completions": 2}
    assert smaller == existing["spec"], "the image of running pods stays"
    assert found.object["metadata"].keys() <= {"name", "namespace", "labels", "annotations"}


def test_nothing_to_change() -> None:
    """A training of the right size, of a fixed size, or one that has ended is left alone."""
    larger = component(trainer={"numNodes": 3})
    assert revision(component(), stored(component())) is None
    assert revision(component(elastic=False, trainer={"numNodes": 3}), stored(component(elastic=False))) is None
    assert revision(larger, stored(component(), terminalState="Completed")) is None


@pytest.mark.parametrize("suspend", [True, False])
def test_suspension_comes_first(suspend: bool) -> None:
    """A training that is suspended or resumed with another size is so also where the size cannot change."""
    existing = stored(component(suspend=not suspend))
    if not suspend:
        existing["metadata"]["annotations"][SUSPEND] = "true"  # it has run before

    found = revision(component(suspend=suspend, trainer={"numNodes": 3}, labels={"a": "b"}), existing)

    assert found is not None
    assert found.fallback is not None
    for each, nodes in ((found, 3), (found.fallback, 2)):
        assert each.object["spec"]["suspend"] is suspend
        assert each.object["metadata"]["labels"] == {"a": "b"}
        assert sizes(each.object) == [(1, 1), (nodes, nodes)]
    assert found.refused == found.fallback.refused == (), "the size is rejected, not too late"


def test_scale() -> None:
    """The scale subresource tells what the cluster has accepted, whatever the TrainJob asks for."""
    jobset = stored(component(trainer={"numNodes": 3}))
    plugin = JobSetPlugin(StaticReader(jobset))
    selector = "jobset.sigs.k8s.io/jobset-name=demo,jobset.sigs.k8s.io/replicatedjob-name=node"
    scale = NodeScale(nodes=3, min_nodes=2, max_nodes=4, selector=selector)
    assert plugin.train_job_status(train_job(trainer={"numNodes": 4})).scale == scale
    assert JobSetPlugin(StaticReader()).train_job_status(train_job()).scale is None
    fixed = JobSetPlugin(StaticReader(stored(component(elastic=False))))
    assert fixed.train_job_status(train_job()).scale is None
