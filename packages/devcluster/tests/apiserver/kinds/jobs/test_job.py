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
    ("before", "after", "refused"),
    [
        pytest.param(OLD_AFFINITY, {**OLD_AFFINITY, "podAffinity": {"b": 2}}, ["spec.template"], id="to pods"),
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


@pytest.mark.parametrize(
    ("labels", "complaints"),
    [
        pytest.param({"app": "web"}, [], id="others"),
        pytest.param({"job-name": "x"}, ["spec.template.metadata.labels[job-name]"], id="of another Job"),
    ],
)
def test_generated_labels_are_reserved(labels: dict[str, str], complaints: list[str]) -> None:
    """A template may carry labels of its own, but not those by which Jobs tell their pods apart."""
    job = make_job()
    job["spec"]["template"]["metadata"] = {"labels": labels}
    assert fields(created(STRATEGY, job)[1]) == complaints


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
