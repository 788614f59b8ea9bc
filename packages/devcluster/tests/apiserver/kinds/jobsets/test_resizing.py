from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.jobsets.builders import complaints_about_change, stored
from trainer.kube.objects import Object
from trainer_devcluster.feature_gates import FeatureGates

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
        pytest.param(
            make_jobset(),
            {"parallelism": 3},
            [f"{SPEC}.completions: Invalid value: 2: {UNEQUAL}"],
            id="parallelism only",
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
            make_jobset(condition="Failed"), {"parallelism": 3, "completions": 3}, [f"{SPEC}: {ENDED}"], id="failed"
        ),
    ],
)
def test_size_of_indexed_jobs(old: Object, size: dict[str, int], complaints: list[str]) -> None:
    """With the gate, parallelism and completions may change, together and while the JobSet has not ended."""
    assert complaints_about_change(resized(old, **size), old, ELASTIC) == complaints


def test_replicated_jobs_cannot_be_renamed_by_resizing() -> None:
    """Sizes are compared by name: another name is another replicated job."""
    old = make_jobset()
    new = resized(old, parallelism=3, completions=3)
    new["spec"]["replicatedJobs"][0]["name"] = "other"
    [complaint] = complaints_about_change(new, old, ELASTIC)
    assert complaint.startswith("spec.replicatedJobs: ")
