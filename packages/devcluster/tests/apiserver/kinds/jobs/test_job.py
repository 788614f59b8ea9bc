"""Jobs: what the API server does to them (batch/v1 defaulting and selector generation), and what of them may change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, fields, make_context, updated
from packages.devcluster.tests.apiserver.kinds.jobs.builders import change, make_indexed_job, make_job
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

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


def test_failure_policy_waits_for_the_failure() -> None:
    """With a failure policy a terminating pod is replaced only when it has failed; conditions match when true."""
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    job, causes = created(STRATEGY, make_job(podFailurePolicy={"rules": rules}))
    assert causes == []
    assert job["spec"]["podReplacementPolicy"] == "Failed"
    [rule] = job["spec"]["podFailurePolicy"]["rules"]
    assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


@pytest.mark.parametrize(
    ("labels", "complaints"),
    [
        pytest.param({"app": "web"}, [], id="others"),
        pytest.param({"job-name": "j"}, [], id="what would have been generated"),
        pytest.param({"job-name": "x"}, ["spec.template.metadata.labels[job-name]"], id="of another Job"),
        pytest.param(
            {"batch.kubernetes.io/controller-uid": "x"},
            ["spec.template.metadata.labels[batch.kubernetes.io/controller-uid]", "spec.template.metadata.labels"],
            id="uid of another Job: the selector would not find its pods",
        ),
    ],
)
def test_generated_labels_are_reserved(labels: dict[str, str], complaints: list[str]) -> None:
    """A template may carry labels of its own, but not those by which Jobs tell their pods apart."""
    job = make_job()
    job["spec"]["template"]["metadata"] = {"labels": labels}
    assert fields(created(STRATEGY, job)[1]) == complaints


def test_an_update_is_checked_as_a_whole() -> None:
    """The real server checks the specification twice and tells it twice."""
    old, _ = created(STRATEGY, make_job())
    new = {**old, "spec": {**old["spec"], "backoffLimit": -1}}
    assert fields(updated(STRATEGY, new, old)) == ["spec.backoffLimit", "spec.backoffLimit"]


@pytest.mark.parametrize(
    ("name", "warnings"),
    [pytest.param("j", 0, id="label"), pytest.param("j.x", 1, id="subdomain"), pytest.param("J" * 3, 1, id="neither")],
)
def test_names_that_are_no_labels_are_warned_of(name: str, warnings: int) -> None:
    """The names of pods and their hosts are made from that of their Job."""
    reported: list[str] = []
    job = make_job()
    job["metadata"]["name"] = name
    context = replace(make_context(), warn=reported.append)
    STRATEGY.default(job, context)
    STRATEGY.prepare_for_create(job, context)
    assert STRATEGY.validate(job, context) == []
    assert len(reported) == warnings
    start = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior"
    assert all(text.startswith(start) for text in reported)


def test_a_selector_of_ones_own_is_refused() -> None:
    """Jobs adopt no pods, and `manualSelector` is for those that do."""
    _, causes = created(STRATEGY, make_job(manualSelector=True, selector={"matchLabels": {"app": "web"}}))
    assert "spec.manualSelector" in fields(causes)
