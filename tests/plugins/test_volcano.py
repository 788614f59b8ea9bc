"""Volcano: what the pods of the nodes and their PodGroup say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime_object, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.framework.pipeline import Pipeline
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.plainml import PlainML
from trainer.plugins.torch.plugin import Torch
from trainer.plugins.volcano import POD_GROUPS, Volcano

QUEUE = "scheduling.volcano.sh/queue-name"


def pipeline(reader: StaticReader | None = None) -> Pipeline:
    """The plugin with those that it needs to become a JobSet."""
    reader = reader or StaticReader()
    return Pipeline(Registry([PlainML(), Torch(), Volcano(reader), JobSetPlugin(reader)]))


def scheduled(scheduler: str | None = "volcano", **pod: Any) -> Object:
    """The nodes, with a scheduler."""
    container = {"name": "trainer", "image": "i", "resources": {"limits": {"cpu": 2}}}
    return replicated_job("node", container, pod=pod | ({"schedulerName": scheduler} if scheduler is not None else {}))


def blueprint(
    *jobs: Object, volcano: Object | None = None, annotations: Object | None = None
) -> ClusterTrainingRuntime:
    """A runtime for Volcano, with annotations of the JobSet."""
    policy = {"volcano": {} if volcano is None else volcano}
    obj = runtime_object(*(jobs or [scheduled()]), policy={"numNodes": 2, "torch": {}}, podGroupPolicy=policy)
    obj["spec"]["template"]["metadata"] = {"annotations": annotations or {}}
    return ClusterTrainingRuntime.from_object(obj)


def built(
    *jobs: Object, spec: Object | None = None, volcano: Object | None = None, annotations: Object | None = None
) -> dict[str, Object]:
    """Objects by kind."""
    wanted = blueprint(*jobs, volcano=volcano, annotations=annotations)
    components = pipeline().build(train_job(**(spec or {})), wanted)
    return {component.object["kind"]: component.object for component in components}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({"annotations": {QUEUE: "q"}}, {"queue": "q"}, id="queue-of-the-runtime"),
        pytest.param(
            {"annotations": {QUEUE: "q"}, "spec": {"annotations": {QUEUE: "own"}}}, {"queue": "own"}, id="TrainJob-wins"
        ),
        pytest.param(
            {"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}}},
            {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}},
            id="topology",
        ),
    ],
)
def test_settings(arguments: dict[str, Any], expected: Object) -> None:
    """Queue and network topology come from where the user says them."""
    spec = built(**arguments)["PodGroup"]["spec"]
    assert {name: value for name, value in spec.items() if not name.startswith("min")} == expected


def test_priority() -> None:
    """The PodGroup has the priority of the nodes, whatever that of other pods is."""
    initializer = replicated_job("initializer", {"name": "x", "image": "i"}, pod={"priorityClassName": "low"})
    objects = built(initializer, scheduled(priorityClassName="high"))
    assert objects["PodGroup"]["spec"]["priorityClassName"] == "high"
    assert "priorityClassName" not in built(initializer, scheduled())["PodGroup"]["spec"]


def test_pods() -> None:
    """The nodes belong to the PodGroup; what runs before or after them does not. The queue stays on the JobSet."""
    initializer = replicated_job("initializer", {"name": "other", "image": "i"})
    jobset = built(initializer, scheduled(), annotations={QUEUE: "q"})["JobSet"]
    templates = {job["name"]: job["template"]["spec"]["template"] for job in jobset["spec"]["replicatedJobs"]}
    assert templates["node"]["metadata"] == {"annotations": {"scheduling.k8s.io/group-name": "demo"}}
    assert "metadata" not in templates["initializer"]
    assert jobset["metadata"]["annotations"] == {QUEUE: "q"}


@pytest.mark.parametrize(
    ("scheduler", "found"),
    [
        pytest.param(None, "absent", id="absent"),
        pytest.param("default-scheduler", "default-scheduler", id="default"),
        pytest.param("volcano-of-my-own", None, id="another-name"),
    ],
)
def test_scheduler(scheduler: str | None, found: str | None) -> None:
    """Pods that Volcano does not get to see are warned of."""
    review = pipeline().review(train_job(), blueprint(scheduled(scheduler)))
    field = (
        "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"
        ".schedulerName"
    )
    text = f"is {found}, so the default scheduler decides about each pod alone; set it to volcano"
    assert review.errors == ()
    assert [str(warning) for warning in review.warnings] == ([f"{field}: {text}"] if found else [])


def test_without_the_crd() -> None:
    """A TrainJob is refused as long as there are no PodGroups."""
    (error,) = pipeline(StaticReader(unserved=[POD_GROUPS])).review(train_job(), blueprint()).errors
    assert str(error) == (
        "ClusterTrainingRuntime/blueprint spec.podGroupPolicy.volcano: Forbidden: the cluster does not have "
        "podgroups.scheduling.volcano.sh; install Volcano with its CRD"
    )
