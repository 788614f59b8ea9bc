"""Validation of new JobSets, in the order and the words of JobSet's webhook."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.jobsets.builders import complaints, make_jobset, make_replicated_job
from trainer.kube.objects import Object

PLAIN = "<nil>: Internal error: "
GATED = (
    "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed when RestartJob feature gate "
    "is disabled"
)


def ruled(*rules: Object) -> Object:
    return make_jobset(failurePolicy={"rules": [{"action": "FailJobSet", **rule} for rule in rules]})


def coordinated(**coordinator: Any) -> Object:
    return make_jobset(coordinator={"replicatedJob": "node", **coordinator})


@pytest.mark.parametrize(
    ("jobset", "complaint"),
    [
        pytest.param(
            ruled({"targetReplicatedJobs": ["x"]}),
            "invalid replicatedJob name 'x' in failure policy does not appear in .spec.ReplicatedJobs",
            id="target of failure",
        ),
        pytest.param(
            ruled({"onJobFailureReasons": ["Bad"]}),
            "invalid job failure reason 'Bad' in failure policy is not a recognized job failure reason",
            id="failure reason",
        ),
        pytest.param(
            ruled({"name": "1"}),
            "invalid failure policy rule name '1', a failure policy rule name must start with an alphabetic character, "
            "optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric "
            "character or '_'",
            id="rule name",
        ),
        pytest.param(
            ruled({"name": "a" * 129}),
            "invalid failure policy rule name of length 129, the rule name must be at least 1 characters long and at "
            "most 128 characters long",
            id="long rule name",
        ),
        pytest.param(
            ruled({"name": "a"}, {"name": "b"}, {"name": "a"}),
            "rule names are not unique, rules with indices [0 2] all have the same name 'a'",
            id="rule name twice",
        ),
        pytest.param(ruled({"action": "RestartJob"}), GATED, id="action behind a gate"),
        pytest.param(
            make_jobset(coordinator={"replicatedJob": "x"}),
            "coordinator replicatedJob x does not exist",
            id="coordinator",
        ),
        pytest.param(
            coordinated(jobIndex=1), "coordinator job index 1 is invalid for replicatedJob node", id="job index"
        ),
        pytest.param(
            coordinated(podIndex=2),
            "coordinator pod index 2 is invalid for replicatedJob node job index 0",
            id="pod index",
        ),
    ],
)
def test_wrong_policies_are_refused(jobset: Object, complaint: str) -> None:
    """In the words of the webhook, which names no field."""
    assert complaints(jobset) == [f"{PLAIN}{complaint}"]


def test_coordinator_needs_indexes() -> None:
    """Without them nobody knows its name."""
    jobset = coordinated()
    jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] = "NonIndexed"
    assert complaints(jobset) == [
        f"{PLAIN}job for coordinator pod must be indexed completion mode, and completions number must be set"
    ]


def test_address_of_the_coordinator_fits_into_a_label() -> None:
    """It is written on every Job and pod."""
    subdomain = "s" * 60
    jobset = make_jobset(network={"subdomain": subdomain}, coordinator={"replicatedJob": "node"})
    [complaint] = complaints(jobset)
    assert complaint.startswith(
        f'{PLAIN}spec will lead to invalid label value "js-node-0-0.{subdomain}" for coordinator label '
        '"jobset.sigs.k8s.io/coordinator" (long JobSet / ReplicatedJob / SubDomain name?): must be no more than 63'
    )


LABEL = "a DNS-1035 label must consist of lower case alphanumeric characters"


def on(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "status": "Complete"} for name in names]


@pytest.mark.parametrize(
    ("jobset", "complaint"),
    [
        pytest.param(
            make_jobset(failurePolicy={"restartStrategy": "InPlaceRestart"}),
            f"{PLAIN}InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled",
            id="restart in place",
        ),
        pytest.param(
            make_jobset(make_replicated_job(replicas=2**30 + 1)),
            f"{PLAIN}the product of replicas and parallelism must not exceed 2147483647 for replicatedJob 'node'",
            id="too many pods",
        ),
    ],
)
def test_wrong_jobsets_are_refused(jobset: Object, complaint: str) -> None:
    """In the words of the webhook."""
    assert complaints(jobset) == [complaint]
