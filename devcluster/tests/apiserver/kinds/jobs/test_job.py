from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from devcluster.tests.apiserver.kinds.context import created, fields, make_context, updated
from devcluster.tests.apiserver.kinds.jobs.builders import make_job
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

STRATEGY = JobStrategy()
GENERATED = {
    "batch.kubernetes.io/controller-uid": "u",
    "controller-uid": "u",
    "batch.kubernetes.io/job-name": "j",
    "job-name": "j",
}


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
    job, causes = created(STRATEGY, make_job())
    assert causes == []
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["completionMode"], spec["suspend"], spec["manualSelector"]) == (
        6,
        "NonIndexed",
        False,
        False,
    )
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert spec["template"]["metadata"]["labels"] == GENERATED
    assert job["metadata"]["labels"] == GENERATED
    assert job["status"] == {}


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
    told: list[str] = []
    job = make_job()
    job["metadata"]["name"] = name
    context = replace(make_context(), warn=told.append)
    STRATEGY.default(job, context)
    STRATEGY.prepare_for_create(job, context)
    assert STRATEGY.validate(job, context) == []
    assert len(told) == warnings
    start = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior"
    assert all(text.startswith(start) for text in told)


def test_a_selector_of_ones_own_is_refused() -> None:
    """Jobs adopt no pods, and `manualSelector` is for those that do."""
    _, causes = created(STRATEGY, make_job(manualSelector=True, selector={"matchLabels": {"app": "web"}}))
    assert "spec.manualSelector" in fields(causes)
