from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.apiserver.kinds.context import created, fields, updated
from trainer.devcluster.apiserver.kinds.job import JobStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

STRATEGY = JobStrategy()


def make_job(pod: dict[str, Any] | None = None, **spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **(pod or {})}}
    return {"metadata": {"name": "j", "uid": "u"}, "spec": {"template": template, **spec}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (1, 1), id="nothing given"),
        pytest.param({"completions": 3}, (1, 3), id="completions only"),
        pytest.param({"parallelism": 3}, (3, None), id="parallelism only: a work queue"),
    ],
)
def test_parallelism_and_completions(spec: dict[str, Any], expected: tuple[int, int | None]) -> None:
    """A Job runs one pod once, unless it says otherwise."""
    job, causes = created(STRATEGY, make_job(**spec))
    assert causes == []
    assert (job["spec"]["parallelism"], job["spec"].get("completions")) == expected


def test_defaults_and_selector() -> None:
    """The selector and the labels that it selects are made from the uid."""
    job, _ = created(STRATEGY, make_job())
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["completionMode"], spec["suspend"], spec["manualSelector"]) == (
        6,
        "NonIndexed",
        False,
        False,
    )
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    labels = {
        "batch.kubernetes.io/controller-uid": "u",
        "controller-uid": "u",
        "batch.kubernetes.io/job-name": "j",
        "job-name": "j",
    }
    assert spec["template"]["metadata"]["labels"] == labels
    assert job["metadata"]["labels"] == labels
    assert job["status"] == {}


def test_failure_policy_waits_for_the_failure() -> None:
    """With a failure policy a terminating pod is replaced only when it has failed."""
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    job, causes = created(STRATEGY, make_job(podFailurePolicy={"rules": rules}))
    assert causes == []
    assert job["spec"]["podReplacementPolicy"] == "Failed"


@pytest.mark.parametrize(
    ("job", "field"),
    [
        pytest.param(make_job(completions=-1), "spec.completions", id="negative"),
        pytest.param(
            make_job(completionMode="Indexed", parallelism=1), "spec.completions", id="indexed needs completions"
        ),
        pytest.param(make_job(completionMode="Sorted"), "spec.completionMode", id="unknown mode"),
        pytest.param(make_job({"restartPolicy": "Always"}), "spec.template.spec.restartPolicy", id="restart policy"),
        pytest.param(make_job({"containers": []}), "spec.template.spec.containers", id="no containers"),
        pytest.param(
            make_job(completionMode="Indexed", completions=1, backoffLimitPerIndex=1),
            "spec.backoffLimitPerIndex",
            id="not supported",
        ),
        pytest.param(
            make_job(successPolicy={"rules": [{}]}), "spec.successPolicy", id="success policy without indexes"
        ),
        pytest.param(
            make_job(
                {"restartPolicy": "OnFailure"},
                podFailurePolicy={"rules": [{"action": "Count", "onPodConditions": [{}]}]},
            ),
            "spec.template.spec.restartPolicy",
            id="failure policy needs Never",
        ),
        pytest.param(
            make_job(podFailurePolicy={"rules": [{"action": "FailIndex", "onPodConditions": [{}]}]}),
            "spec.podFailurePolicy.rules[0].action",
            id="action of per-index limits",
        ),
    ],
)
def test_wrong_jobs_are_refused(job: Object, field: str) -> None:
    """The cause names the field."""
    assert fields(created(STRATEGY, deepcopy(job))[1]) == [field]


def test_indexed_hostnames_must_fit() -> None:
    """`<job>-<last index>` is a DNS label."""
    job = make_job(completionMode="Indexed", completions=1000)
    job["metadata"]["name"] = "a" * 60
    assert fields(created(STRATEGY, job)[1]) == ["metadata.name"]


def change(obj: Object, path: str, value: object) -> Object:
    changed = deepcopy(obj)
    *parents, last = path.split(".")
    target = changed
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "refused"),
    [
        pytest.param("spec.parallelism", 5, [], id="parallelism"),
        pytest.param("spec.suspend", True, [], id="suspend"),
        pytest.param("spec.backoffLimit", 1, [], id="back-off limit"),
        pytest.param("spec.completionMode", "NonIndexed", ["spec.completionMode"], id="completion mode"),
        pytest.param("spec.completions", 3, ["spec.completions"], id="completions alone"),
        pytest.param("spec.selector", {"matchLabels": {"a": "b"}}, ["spec.selector"], id="selector"),
        pytest.param("spec.template.spec.nodeSelector", {"a": "b"}, ["spec.template"], id="template"),
    ],
)
def test_what_may_change_while_the_job_runs(path: str, value: object, refused: list[str]) -> None:
    """Pods that exist cannot be changed through their Job."""
    old, causes = created(STRATEGY, make_job(completionMode="Indexed", completions=2, parallelism=2))
    assert causes == []
    assert fields(updated(STRATEGY, change(old, path, value), old)) == refused


def test_indexed_job_may_be_resized() -> None:
    """Completions and parallelism change together."""
    old, _ = created(STRATEGY, make_job(completionMode="Indexed", completions=2, parallelism=2))
    new = change(change(old, "spec.completions", 3), "spec.parallelism", 3)
    assert updated(STRATEGY, new, old) == []


@pytest.mark.parametrize(
    ("path", "status", "refused"),
    [
        pytest.param("spec.template.spec.nodeSelector", {}, [], id="node selector"),
        pytest.param("spec.template.metadata.annotations", {}, [], id="annotations"),
        pytest.param("spec.template.spec.hostname", {}, ["spec.template"], id="hostname"),
        pytest.param(
            "spec.template.spec.nodeSelector",
            {"startTime": "2026-11-21T12:00:00Z"},
            ["spec.template"],
            id="has run before",
        ),
    ],
)
def test_scheduling_directives_may_change_while_suspended(path: str, status: Object, refused: list[str]) -> None:
    """An admission queue decides where the pods go before it resumes the Job."""
    old, _ = created(STRATEGY, make_job(suspend=True))
    old["status"] = status
    value = "h" if path.endswith("hostname") else {"a": "b"}
    new = change(change(old, path, value), "spec.suspend", False)
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
    old, _ = created(STRATEGY, make_job(completionMode=mode, completions=2, parallelism=2))
    new = change(change(old, "spec.parallelism", sizes[0]), "spec.completions", sizes[1])
    assert [cause.message for cause in updated(STRATEGY, new, old)] == ([complaint] if complaint else [])


def test_job_cannot_shrink_below_what_its_success_takes() -> None:
    """Its success policy could never be met."""
    policy = {"rules": [{"succeededCount": 2}]}
    old, causes = created(
        STRATEGY, make_job(completionMode="Indexed", completions=2, parallelism=2, successPolicy=policy)
    )
    assert causes == []
    new = change(change(old, "spec.parallelism", 1), "spec.completions", 1)
    assert fields(updated(STRATEGY, new, old)) == ["spec.successPolicy.rules[0].succeededCount"]
