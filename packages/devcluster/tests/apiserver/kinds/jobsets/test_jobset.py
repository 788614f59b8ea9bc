"""JobSets: what the webhooks of JobSet do; the schema and its rules are in `data/jobset_crd.yaml`."""

from __future__ import annotations

from copy import deepcopy

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created
from packages.devcluster.tests.apiserver.kinds.jobsets.builders import (
    complaints_about_change,
    make_jobset,
    make_replicated_job,
    stored,
)
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.jobsets.jobset import JobSetStrategy
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES


def fields(complaints: list[str]) -> list[str]:
    return [complaint.partition(": ")[0] for complaint in complaints]


@pytest.mark.parametrize(
    ("suspend", "resumed", "field", "refused"),
    [
        pytest.param(True, False, "nodeSelector", [], id="on resumption"),
        pytest.param(True, True, "tolerations", [], id="while suspended"),
        pytest.param(False, True, "schedulingGates", [], id="on suspension"),
        pytest.param(False, False, "nodeSelector", ["spec.replicatedJobs"], id="running"),
        pytest.param(True, True, "hostname", ["spec.replicatedJobs"], id="another field"),
    ],
)
def test_templates_may_change_only_in_scheduling_and_only_while_suspended(
    suspend: bool, resumed: bool, field: str, refused: list[str]
) -> None:
    """Admission queues place a suspended JobSet before they resume it."""
    old = stored(make_jobset(suspend=suspend))
    new = deepcopy(old)
    new["spec"]["suspend"] = resumed
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][field] = {"a": "b"}
    assert fields(complaints_about_change(new, old)) == refused


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_metadata_of_pods_may_change_while_suspended(field: str) -> None:
    """Queues write down there what they have decided."""
    old = stored(make_jobset(suspend=True))
    new = deepcopy(old)
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"][field] = {"a": "b"}
    assert complaints_about_change(new, old) == []


def test_replicated_jobs_cannot_be_added_or_taken_away() -> None:
    """The indexes in the labels of running Jobs would be wrong."""
    old = stored(make_jobset())
    new = deepcopy(old)
    new["spec"]["replicatedJobs"].append(make_replicated_job("more"))
    assert fields(complaints_about_change(new, old)) == ["spec.replicatedJobs"]
    assert fields(complaints_about_change(old, new)) == ["spec.replicatedJobs"]


@pytest.mark.parametrize(
    ("field", "value", "refused"),
    [
        pytest.param("managedBy", "example.com/other", ["spec.managedBy"], id="manager"),
        pytest.param("suspend", True, [], id="suspend"),
        pytest.param("ttlSecondsAfterFinished", 5, [], id="time to live"),
        pytest.param("coordinator", {"replicatedJob": "node"}, [], id="coordinator"),
    ],
)
def test_what_else_may_change(field: str, value: object, refused: list[str]) -> None:
    """Policies and network are held by rules of the schema."""
    old = stored(make_jobset())
    new = deepcopy(old)
    new["spec"][field] = value
    assert fields(complaints_about_change(new, old)) == refused


def test_failure_policy_rules_get_names() -> None:
    """By their position; the names appear in condition reasons."""
    policy = {"rules": [{"action": "FailJobSet"}, {"action": "RestartJobSet", "name": "mine"}]}
    jobset = stored(make_jobset(failurePolicy=policy))
    assert [rule["name"] for rule in jobset["spec"]["failurePolicy"]["rules"]] == ["failurePolicyRule0", "mine"]


def refusal(jobset: Object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        created(JobSetStrategy(DEFAULT_FEATURE_GATES), deepcopy(jobset))
    return caught.value


def test_several_refusals_are_reported_together() -> None:
    """In brackets, as all lists of field errors."""
    error = refusal(make_jobset(network={"subdomain": "1"}, managedBy="me"))
    assert error.message.partition(" is invalid: ")[2].startswith("[spec.network.subdomain: Invalid value")
    assert 'spec.managedBy: Invalid value: "me": must be a domain-prefixed path' in error.message
