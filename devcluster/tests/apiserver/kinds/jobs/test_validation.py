from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from devcluster.tests.apiserver.kinds.context import created
from devcluster.tests.apiserver.kinds.jobs.builders import make_job
from trainer_devcluster.apiserver.kinds.jobs.job import JobStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object

STRATEGY = JobStrategy()


def complaints(job: Object) -> list[str]:
    return [str(cause) for cause in created(STRATEGY, deepcopy(job))[1]]


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        pytest.param(
            make_job(completions=-1),
            "spec.completions: Invalid value: -1: must be greater than or equal to 0",
            id="negative",
        ),
        pytest.param(
            make_job(completionMode="Sorted"),
            'spec.completionMode: Unsupported value: "Sorted": supported values: "NonIndexed", "Indexed"',
            id="unknown mode",
        ),
        pytest.param(
            make_job(completionMode="Indexed", parallelism=1),
            "spec.completions: Required value: when completion mode is Indexed",
            id="indexed needs completions",
        ),
        pytest.param(
            make_job(backoffLimitPerIndex=1),
            "spec.backoffLimitPerIndex: Forbidden: the dev cluster counts failures for the Job as a whole: leave it "
            "out, or use a real cluster",
            id="limit per index",
        ),
        pytest.param(
            make_job(successPolicy={"rules": [{"succeededCount": 1}]}),
            'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
            id="success policy without indexes",
        ),
        pytest.param(
            make_job(podReplacementPolicy="Always"),
            'spec.podReplacementPolicy: Unsupported value: "Always": supported values: "Failed", "TerminatingOrFailed"',
            id="replacement policy",
        ),
        pytest.param(
            make_job(podReplacementPolicy="TerminatingOrFailed", podFailurePolicy={"rules": []}),
            'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
            id="replacement policy that a failure policy does not allow",
        ),
        pytest.param(
            make_job({"restartPolicy": "Always"}),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            id="pods that never end",
        ),
        pytest.param(
            make_job({"restartPolicy": "OnFailure"}, podFailurePolicy={"rules": []}),
            'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when '
            "podFailurePolicy is specified",
            id="failure policy needs Never",
        ),
        pytest.param(make_job({"containers": []}), "spec.template.spec.containers: Required value", id="no containers"),
        pytest.param(
            make_job(managedBy="me"),
            'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
            id="manager",
        ),
    ],
)
def test_wrong_jobs_are_refused(job: Object, complaint: str) -> None:
    """In the words of the real server."""
    assert complaints(job) == [complaint]


def test_indexed_hostnames_must_fit() -> None:
    """`<job>-<last index>` is a DNS label."""
    job = make_job(completionMode="Indexed", completions=1000)
    name = job["metadata"]["name"] = "a" * 60
    assert complaints(job) == [
        f'metadata.name: Invalid value: "{name}": will not able to create pod with invalid DNS label: {name}-999'
    ]


def test_names_of_other_jobs_may_be_longer() -> None:
    """Their pods are called by a cut name and random letters."""
    job = make_job()
    job["metadata"]["name"] = "a" * 63
    assert complaints(job) == []


@pytest.mark.parametrize(
    ("manager", "complaint"),
    [
        pytest.param("example.com/a/b", None, id="a longer path"),
        pytest.param("", "Required value", id="nothing"),
        pytest.param("/x", 'Invalid value: "/x": must be a domain-prefixed path (such as "acme.io/foo")', id="no host"),
        pytest.param("example.com/a b", 'Invalid value: "a b": Invalid path (regex used', id="a space"),
        pytest.param("example.com/" + "a" * 63, "Too long: may not be more than 63 bytes", id="long"),
    ],
)
def test_managers_are_domain_prefixed_paths(manager: str, complaint: str | None) -> None:
    """So that controllers of different people do not share a name."""
    found = complaints(make_job(managedBy=manager))
    assert [text.startswith(f"spec.managedBy: {complaint}") for text in found] == ([] if complaint is None else [True])
