from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.jobsets.builders import complaints_about_change, stored
from trainer.kube.objects import Object
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

ELASTIC = FeatureGates(elastic_job_set=True)
SPEC = "spec.replicatedJobs[0].template.spec"
ENDED = "Forbidden: Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)"
UNEQUAL = "completions must be equal to parallelism for Elastic Indexed Jobs"


def make_jobset(mode: str = "Indexed", condition: str = "", **size: Any) -> Object:
    """A stored JobSet whose Jobs have two pods, unless `size` says otherwise."""
    pod_spec = {"containers": [{"name": "c"}]}
    job_spec = {"parallelism": 2, "completions": 2, "completionMode": mode, "template": {"spec": pod_spec}, **size}
    replicated_job = {"name": "node", "groupName": "default", "replicas": 1, "template": {"spec": job_spec}}
    jobset: Object = {"metadata": {"name": "js"}, "spec": {"replicatedJobs": [replicated_job]}}
    if condition:
        jobset["status"] = {"conditions": [{"type": condition, "status": "True"}]}
    return stored(jobset, ELASTIC)


def resized(old: Object, **size: Any) -> Object:
    """The same JobSet with other numbers of pods."""
    new = deepcopy(old)
    new["spec"]["replicatedJobs"][0]["template"]["spec"] |= size
    return new


@pytest.mark.parametrize(
    ("old", "size", "complaints"),
    [
        pytest.param(make_jobset(), {"parallelism": 3, "completions": 3}, [], id="up"),
        pytest.param(make_jobset(), {"parallelism": 1, "completions": 1}, [], id="down"),
        pytest.param(make_jobset(), {}, [], id="the same"),
        pytest.param(
            make_jobset(),
            {"parallelism": 3},
            [f"{SPEC}.completions: Invalid value: 2: {UNEQUAL}"],
            id="parallelism only",
        ),
        pytest.param(
            make_jobset(),
            {"completions": 3},
            [f"{SPEC}.completions: Invalid value: 3: {UNEQUAL}"],
            id="completions only",
        ),
        pytest.param(
            make_jobset(),
            {"parallelism": 0, "completions": 0},
            [
                f"{SPEC}.parallelism: Invalid value: 0: parallelism must be >= 1",
                f"{SPEC}.completions: Invalid value: 0: completions must be >= 1",
            ],
            id="to nothing",
        ),
        pytest.param(
            make_jobset(condition="Completed"),
            {"parallelism": 3, "completions": 3},
            [f"{SPEC}: {ENDED}"],
            id="completed",
        ),
        pytest.param(
            make_jobset(condition="Failed"), {"parallelism": 3, "completions": 3}, [f"{SPEC}: {ENDED}"], id="failed"
        ),
    ],
)
def test_size_of_indexed_jobs(old: Object, size: dict[str, int], complaints: list[str]) -> None:
    """With the gate, parallelism and completions may change, together and while the JobSet has not ended."""
    assert complaints_about_change(resized(old, **size), old, ELASTIC) == complaints


@pytest.mark.parametrize(
    ("gates", "mode"),
    [
        pytest.param(DEFAULT_FEATURE_GATES, "Indexed", id="without the gate"),
        pytest.param(ELASTIC, "NonIndexed", id="pods without index"),
    ],
)
def test_size_is_immutable_otherwise(gates: FeatureGates, mode: str) -> None:
    """The whole list is refused in the words of JobSet."""
    old = make_jobset(mode)
    [complaint] = complaints_about_change(resized(old, parallelism=3, completions=3), old, gates)
    assert complaint.startswith("spec.replicatedJobs: Invalid value: [")
    assert complaint.endswith(": field is immutable")


def test_nothing_else_may_change_with_the_size() -> None:
    """The gate is about the number of pods only."""
    old = make_jobset()
    new = resized(old, parallelism=3, completions=3, backoffLimit=9)
    [complaint] = complaints_about_change(new, old, ELASTIC)
    assert complaint.startswith("spec.replicatedJobs: ")


def test_size_and_scheduling_of_a_suspended_jobset() -> None:
    """An admission queue may place a JobSet and admit fewer pods at once."""
    old = make_jobset()
    old["spec"]["suspend"] = True
    new = resized(old, parallelism=1, completions=1)
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    assert complaints_about_change(new, old, ELASTIC) == []


def test_replicated_jobs_cannot_be_renamed_by_resizing() -> None:
    """Sizes are compared by name: another name is another replicated job."""
    old = make_jobset()
    new = resized(old, parallelism=3, completions=3)
    new["spec"]["replicatedJobs"][0]["name"] = "other"
    [complaint] = complaints_about_change(new, old, ELASTIC)
    assert complaint.startswith("spec.replicatedJobs: ")
