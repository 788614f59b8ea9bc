from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devcluster.tests.apiserver.kinds.context import created, fields, updated
from devcluster.tests.apiserver.kinds.jobs.builders import change, make_indexed_job
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

STRATEGY = JobStrategy()
AFFINITY = "spec.template.spec.affinity"
OLD_AFFINITY = {"nodeAffinity": {"a": 1}, "podAffinity": {"b": 1}}


@pytest.mark.parametrize(
    ("path", "value", "refused"),
    [
        pytest.param("spec.parallelism", 5, [], id="parallelism"),
        pytest.param("spec.suspend", True, [], id="suspend"),
        pytest.param("spec.backoffLimit", 1, [], id="back-off limit"),
        pytest.param("spec.activeDeadlineSeconds", 1, [], id="deadline"),
        pytest.param("spec.ttlSecondsAfterFinished", 1, [], id="time to live"),
        pytest.param("spec.podReplacementPolicy", "Failed", [], id="replacement policy"),
        pytest.param("spec.completionMode", "NonIndexed", ["spec.completionMode"], id="completion mode"),
        pytest.param("spec.completions", 3, ["spec.completions"], id="completions alone"),
        pytest.param("spec.managedBy", "example.com/me", ["spec.managedBy"], id="manager"),
        pytest.param(
            "spec.successPolicy", {"rules": [{"succeededCount": 1}]}, ["spec.successPolicy"], id="success policy"
        ),
        pytest.param("spec.template.spec.nodeSelector", {"a": "b"}, ["spec.template"], id="template"),
    ],
)
def test_what_may_change_while_the_job_runs(path: str, value: object, refused: list[str]) -> None:
    """Pods that exist cannot be changed through their Job."""
    old, causes = created(STRATEGY, make_indexed_job())
    assert causes == []
    assert fields(updated(STRATEGY, change(old, path, value), old)) == refused


def test_the_selector_stays() -> None:
    """It says which pods are the Job's."""
    old, _ = created(STRATEGY, make_indexed_job())
    new = change(old, "spec.selector", {"matchLabels": {"controller-uid": "u"}})
    assert fields(updated(STRATEGY, new, old)) == ["spec.selector"]


@pytest.mark.parametrize(
    ("path", "value", "status", "refused"),
    [
        pytest.param("spec.template.spec.nodeSelector", {"a": "b"}, {}, [], id="node selector"),
        pytest.param("spec.template.spec.schedulingGates", [{"name": "a"}], {}, [], id="gates"),
        pytest.param("spec.template.metadata.annotations", {"a": "b"}, {}, [], id="annotations"),
        pytest.param("spec.template.metadata.name", "x", {}, ["spec.template"], id="other metadata"),
        pytest.param("spec.template.spec.hostname", "h", {}, ["spec.template"], id="hostname"),
        pytest.param(
            "spec.template.spec.nodeSelector",
            {"a": "b"},
            {"startTime": "2026-11-21T12:00:00Z"},
            ["spec.template"],
            id="has run before",
        ),
    ],
)
def test_scheduling_directives_may_change_while_suspended(
    path: str, value: object, status: Object, refused: list[str]
) -> None:
    """An admission queue decides where the pods go before it resumes the Job."""
    old, _ = created(STRATEGY, make_indexed_job(suspend=True))
    old["status"] = status
    new = change(change(old, path, value), "spec.suspend", False)
    assert fields(updated(STRATEGY, new, old)) == refused


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        pytest.param(OLD_AFFINITY, {**OLD_AFFINITY, "nodeAffinity": {"a": 2}}, [], id="to nodes"),
        pytest.param(OLD_AFFINITY, {**OLD_AFFINITY, "podAffinity": {"b": 2}}, ["spec.template"], id="to pods"),
        pytest.param({"nodeAffinity": {"a": 1}}, None, [], id="taken away"),
        pytest.param(OLD_AFFINITY, None, ["spec.template"], id="taken away with that to pods"),
        pytest.param(None, {"nodeAffinity": {"a": 1}}, [], id="new"),
        pytest.param(None, OLD_AFFINITY, ["spec.template"], id="new to pods"),
    ],
)
def test_only_the_affinity_to_nodes_may_change(before: Object | None, after: Object | None, refused: list[str]) -> None:
    """What an admission queue has to say is about nodes."""
    job = make_indexed_job({} if before is None else {"affinity": before}, suspend=True)
    old, _ = created(STRATEGY, job)
    new = change(old, AFFINITY, after)
    if after is None:
        del new["spec"]["template"]["spec"]["affinity"]
    assert fields(updated(STRATEGY, new, old)) == refused


@pytest.mark.parametrize(
    ("mode", "sizes", "complaint"),
    [
        pytest.param("Indexed", (3, 3), None, id="together"),
        pytest.param(
            "Indexed", (2, 3), "Invalid value: 3: can only be modified in tandem with spec.parallelism", id="alone"
        ),
        pytest.param("NonIndexed", (3, 3), "Invalid value: 3: field is immutable", id="pods without index"),
    ],
)
def test_elastic_jobs(mode: str, sizes: tuple[int, int], complaint: str | None) -> None:
    """Only Indexed Jobs can be resized, and only as a whole."""
    old, _ = created(STRATEGY, make_indexed_job(completionMode=mode))
    new = change(change(old, "spec.parallelism", sizes[0]), "spec.completions", sizes[1])
    assert [cause.message for cause in updated(STRATEGY, new, old)] == ([complaint] if complaint else [])


def test_job_cannot_shrink_below_what_its_success_takes() -> None:
    """Its success policy could never be met."""
    old, causes = created(STRATEGY, make_indexed_job(successPolicy={"rules": [{"succeededCount": 2}]}))
    assert causes == []
    new = change(change(old, "spec.parallelism", 1), "spec.completions", 1)
    assert set(fields(updated(STRATEGY, new, old))) == {"spec.successPolicy.rules[0].succeededCount"}
