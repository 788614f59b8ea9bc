from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.apiserver.kinds.context import created, fields, updated
from trainer.devcluster.apiserver.kinds.jobset import JobSetStrategy
from trainer.devcluster.feature_gates import DEFAULT_FEATURE_GATES

if TYPE_CHECKING:
    from trainer.kube.objects import Object

STRATEGY = JobSetStrategy(DEFAULT_FEATURE_GATES)


def make_replicated_job(name: str = "node", **fields: Any) -> Object:
    """As it comes out of the schema's defaults."""
    template = {"spec": {"completions": 2, "parallelism": 2, "template": {"spec": {"containers": [{"name": "c"}]}}}}
    return {"name": name, "groupName": "default", "replicas": 1, "template": template, **fields}


def make_jobset(*replicated_jobs: Object, name: str = "js", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"replicatedJobs": list(replicated_jobs) or [make_replicated_job()], **spec},
    }


def test_defaults_are_those_of_the_webhook() -> None:
    """Policies, network, completion mode and restart policy; structs of Go are never absent."""
    jobset, causes = created(STRATEGY, make_jobset())
    assert causes == []
    spec = jobset["spec"]
    assert spec["successPolicy"] == {"operator": "All"}
    assert spec["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    template = spec["replicatedJobs"][0]["template"]
    assert template["metadata"] == {}
    assert template["spec"]["completionMode"] == "Indexed"
    assert template["spec"]["template"]["metadata"] == {}
    assert template["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert template["spec"]["template"]["spec"]["containers"] == [{"name": "c", "resources": {}}]


def test_failure_policy_rules_get_names() -> None:
    """By their position; the names appear in condition reasons."""
    policy = {"rules": [{"action": "FailJobSet"}, {"action": "RestartJobSet", "name": "mine"}]}
    jobset, causes = created(STRATEGY, make_jobset(failurePolicy=policy))
    assert causes == []
    assert [rule["name"] for rule in jobset["spec"]["failurePolicy"]["rules"]] == ["failurePolicyRule0", "mine"]


def on(name: str, status: str = "Complete") -> list[dict[str, str]]:
    return [{"name": name, "status": status}]


@pytest.mark.parametrize(
    ("jobset", "field"),
    [
        pytest.param(make_jobset(make_replicated_job("Node")), "spec.replicatedJobs[0].name", id="upper case"),
        pytest.param(make_jobset(name="j" * 60), "spec.replicatedJobs[0].name", id="job name too long"),
        pytest.param(make_jobset(name="j" * 50), "spec.replicatedJobs[0].name", id="pod name too long"),
        pytest.param(
            make_jobset(make_replicated_job(dependsOn=on("node"))),
            "spec.replicatedJobs[0].dependsOn",
            id="first depends",
        ),
        pytest.param(
            make_jobset(make_replicated_job("a"), make_replicated_job("b", dependsOn=on("c"))),
            "spec.replicatedJobs[1].dependsOn[0].name",
            id="depends on nothing",
        ),
        pytest.param(
            make_jobset(make_replicated_job("a"), make_replicated_job("b", dependsOn=on("b"))),
            "spec.replicatedJobs[1].dependsOn[0].name",
            id="depends on itself",
        ),
        pytest.param(make_jobset(network={"subdomain": "a.b"}), "spec.network.subdomain", id="subdomain"),
        pytest.param(
            make_jobset(successPolicy={"operator": "All", "targetReplicatedJobs": ["x"]}),
            "spec.successPolicy.targetReplicatedJobs[0]",
            id="target of success",
        ),
        pytest.param(
            make_jobset(failurePolicy={"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["x"]}]}),
            "spec.failurePolicy.rules[0].targetReplicatedJobs[0]",
            id="target of failure",
        ),
        pytest.param(
            make_jobset(failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["Bad"]}]}),
            "spec.failurePolicy.rules[0].onJobFailureReasons[0]",
            id="failure reason",
        ),
        pytest.param(
            make_jobset(failurePolicy={"rules": [{"action": "FailJobSet", "name": "1"}]}),
            "spec.failurePolicy.rules[0].name",
            id="rule name",
        ),
        pytest.param(
            make_jobset(failurePolicy={"rules": [{"action": "RestartJob"}]}),
            "spec.failurePolicy.rules[0].action",
            id="action behind a feature gate",
        ),
        pytest.param(
            make_jobset(coordinator={"replicatedJob": "x"}), "spec.coordinator.replicatedJob", id="coordinator"
        ),
        pytest.param(
            make_jobset(coordinator={"replicatedJob": "node", "podIndex": 2}),
            "spec.coordinator.podIndex",
            id="pod index",
        ),
        pytest.param(
            make_jobset(coordinator={"replicatedJob": "node", "jobIndex": 1}),
            "spec.coordinator.jobIndex",
            id="job index",
        ),
        pytest.param(
            make_jobset(failurePolicy={"restartStrategy": "InPlaceRestart"}),
            "spec.failurePolicy.restartStrategy",
            id="unsupported restart",
        ),
    ],
)
def test_wrong_jobsets_are_refused(jobset: Object, field: str) -> None:
    """The cause names the field."""
    assert fields(created(STRATEGY, deepcopy(jobset))[1]) == [field]


def test_long_name_is_explained() -> None:
    """The text of JobSet says which limit is meant."""
    _, [cause] = created(STRATEGY, make_jobset(name="j" * 60))
    assert "job names generated for this JobSet will exceed 63 characters" in cause.message


@pytest.mark.parametrize(
    ("suspend", "field", "refused"),
    [
        pytest.param(True, "nodeSelector", [], id="suspended"),
        pytest.param(False, "nodeSelector", ["spec.replicatedJobs"], id="running"),
        pytest.param(True, "hostname", ["spec.replicatedJobs"], id="another field"),
    ],
)
def test_templates_may_change_only_in_scheduling_and_only_while_suspended(
    suspend: bool, field: str, refused: list[str]
) -> None:
    """Admission queues place a suspended JobSet before they resume it."""
    old, _ = created(STRATEGY, make_jobset(suspend=suspend))
    new = deepcopy(old)
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][field] = {"a": "b"}
    assert fields(updated(STRATEGY, new, old)) == refused


def test_replicated_jobs_cannot_be_added() -> None:
    """The indexes in the labels of running Jobs would be wrong."""
    old, _ = created(STRATEGY, make_jobset())
    new = deepcopy(old)
    new["spec"]["replicatedJobs"].append(make_replicated_job("more"))
    assert fields(updated(STRATEGY, new, old)) == ["spec.replicatedJobs"]


def test_managed_by_is_immutable() -> None:
    """Two controllers must not take over from each other in mid-flight."""
    old, _ = created(STRATEGY, make_jobset())
    new = deepcopy(old)
    new["spec"]["managedBy"] = "example.com/other"
    assert fields(updated(STRATEGY, new, old)) == ["spec.managedBy"]
