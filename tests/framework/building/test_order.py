"""The order in which replicated Jobs start."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.objects import Object
from trainer.plugins.jobset.builder import build_jobset

IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
INITIALIZER = replicated_job("Initializer", {"name": "dataset-initializer"}, {"name": "model-initializer"})
NODE = replicated_job("Node")
FINALIZER = replicated_job("Finalizer", {"name": "model-exporter"})
LAUNCHER = replicated_job("launcher", {"name": "mpi-launcher"})


def spec_of(*jobs: Object, jobset: Any = None) -> Object:
    """Spec of the JobSet that is built from these replicated Jobs."""
    job = train_job()
    spec: Object = build_jobset(extract(job, runtime(*jobs, jobset=IN_ORDER if jobset is None else jobset)), job)[
        "spec"
    ]
    return spec


def labelled(name: str, step: str) -> Object:
    """A replicated Job whose label says what it does."""
    job = replicated_job(name, {"name": "c"})
    job["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}}
    return job


def test_exporter_behind_a_chief() -> None:
    """The end of a chief is that of the training: its workers and parameter servers need not end."""
    jobs = NODE, replicated_job("chief"), replicated_job("ps"), FINALIZER
    job = train_job()
    info = extract(job, runtime(*jobs, jobset=IN_ORDER, policy={"tensorflow": {}}))
    depends_on = {each["name"]: each.get("dependsOn") for each in build_jobset(info, job)["spec"]["replicatedJobs"]}
    assert depends_on["finalizer"] == [{"name": "chief", "status": "Complete"}]


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        pytest.param([NODE], {"node": None}, id="only-the-trainer"),
        pytest.param(
            [LAUNCHER, INITIALIZER, labelled("worker", "trainer"), NODE],
            {
                "initializer": None,
                "worker": ("initializer", "Complete"),
                "launcher": ("worker", "Ready"),
                "node": ("launcher", "Ready"),
            },
            id="a-label-before-names",
        ),
        pytest.param(
            [replicated_job("ps", {"name": "ps"}), NODE, replicated_job("board", {"name": "board"}), FINALIZER],
            {
                "ps": None,
                "node": ("ps", "Ready"),
                "board": ("node", "Ready"),
                "finalizer": ("node", "Complete"),
            },
            id="others-wait-until-ready",
        ),
    ],
)
def test_in_order(jobs: list[Object], expected: dict[str, tuple[str, str] | None]) -> None:
    """Each replicated Job depends on one earlier in the list, and JobSet's own policy is gone."""
    spec = spec_of(*jobs)
    found = {
        job["name"]: next(((d["name"], d["status"]) for d in job.get("dependsOn") or []), None)
        for job in spec["replicatedJobs"]
    }
    assert found == expected
    assert list(found) == list(expected)
    assert "startupPolicy" not in spec


def test_any_order_is_left_alone() -> None:
    """Without InOrder neither the list nor dependencies of the runtime change."""
    node = NODE | {"dependsOn": [{"name": "Initializer", "status": "Complete"}]}
    spec = spec_of(INITIALIZER, node, jobset={"startupPolicy": {"startupPolicyOrder": "AnyOrder"}})
    assert spec["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert spec["replicatedJobs"][1]["dependsOn"] == [{"name": "initializer", "status": "Complete"}]
    assert "dependsOn" not in spec["replicatedJobs"][0]


def test_two_orders_exclude_each_other() -> None:
    """JobSet would refuse InOrder beside dependsOn, so the runtime is refused with the field."""
    with pytest.raises(BuildError) as caught:
        spec_of(INITIALIZER, NODE | {"dependsOn": [{"name": "Initializer", "status": "Ready"}]})
    assert str(caught.value) == (
        "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].dependsOn: Forbidden: excludes "
        "startupPolicy.startupPolicyOrder InOrder; use one of them"
    )
