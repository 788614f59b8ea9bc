"""Jobs and volume claims of a JobSet: what JobSet takes and Kubernetes then refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.kube.objects import Object
from trainer.plugins.jobset.checks import check_jobs

JOB = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec"
TEMPLATES = "ClusterTrainingRuntime/blueprint spec.template.spec.volumeClaimPolicies[0].templates"
NEVER = {"restartPolicy": "Never"}
EXIT_CODES = {"operator": "In", "values": [1, 2]}


def problems(job_spec: Object, *, pod: Object | None = None, **jobset: Any) -> list[str]:
    """What is wrong with the Jobs of a runtime of two nodes whose trainer has this Job spec."""
    job = replicated_job("node", {"name": "trainer", "image": "i"} | (pod or {}).pop("container", {}), pod=pod)
    job["template"]["spec"] |= job_spec
    info = extract(train_job(trainer={"numNodes": 2}), runtime(job, jobset=jobset))
    return [str(error) for error in check_jobs(info)]


def failure(**rule: Any) -> Object:
    """A Job spec with one rule about failures."""
    return {"podFailurePolicy": {"rules": [{"action": "FailJob"} | rule]}}


def success(**rule: Any) -> Object:
    """A Job spec with one rule about success."""
    return {"successPolicy": {"rules": [rule]}}


RULE = f"{JOB}.podFailurePolicy.rules[0]"


@pytest.mark.parametrize(
    ("job_spec", "message"),
    [
        pytest.param(
            failure(), f"{RULE}: Invalid value: must have exactly one of onExitCodes, onPodConditions", id="no-cause"
        ),
        pytest.param(
            failure(onExitCodes=EXIT_CODES | {"values": [0]}),
            f"{RULE}.onExitCodes.values: Invalid value: [0]: must not contain 0 when operator is In",
            id="failing-with-success",
        ),
        pytest.param(
            failure(onExitCodes=EXIT_CODES | {"values": [2, 1]}),
            f"{RULE}.onExitCodes.values: Invalid value: [2,1]: must be in ascending order",
            id="order-of-codes",
        ),
        pytest.param(
            failure(onExitCodes=EXIT_CODES | {"containerName": "other"}),
            f'{RULE}.onExitCodes.containerName: Invalid value: "other": must be a container of the pods: trainer',
            id="container",
        ),
        pytest.param(
            failure(action="FailIndex", onExitCodes=EXIT_CODES),
            f'{RULE}.action: Invalid value: "FailIndex": needs backoffLimitPerIndex',
            id="fail-index",
        ),
        pytest.param(
            failure(onExitCodes=EXIT_CODES) | {"podReplacementPolicy": "TerminatingOrFailed"},
            f'{JOB}.podReplacementPolicy: Invalid value: "TerminatingOrFailed": '
            "must be Failed when podFailurePolicy is set",
            id="replacement",
        ),
        pytest.param(
            {"maxFailedIndexes": 1},
            f"{JOB}.backoffLimitPerIndex: Required value: maxFailedIndexes is set",
            id="failed-indexes",
        ),
        pytest.param(
            {"maxFailedIndexes": 3, "backoffLimitPerIndex": 1},
            f"{JOB}.maxFailedIndexes: Invalid value: 3: must be at most 2, the number of pods",
            id="more-failed-indexes-than-nodes",
        ),
        pytest.param(
            success(),
            f"{JOB}.successPolicy.rules[0]: Required value: give it succeededCount, succeededIndexes or both",
            id="success-of-nothing",
        ),
        pytest.param(
            success(succeededIndexes="0..1"),
            f'{JOB}.successPolicy.rules[0].succeededIndexes: Invalid value: "0..1": '
            "must be numbers and ranges, such as 0,2-4",
            id="range",
        ),
        pytest.param(
            success(succeededCount=3),
            f"{JOB}.successPolicy.rules[0].succeededCount: Invalid value: 3: "
            "must be between 0 and 2, the number of pods",
            id="more-successes-than-nodes",
        ),
        pytest.param(
            {"manualSelector": True}, f"{JOB}.selector: Required value: manualSelector is true", id="no-selector"
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": "b"}}},
            f"{JOB}.selector: Forbidden: Kubernetes generates it; remove it",
            id="selector",
        ),
        pytest.param(
            {"managedBy": "me"},
            f'{JOB}.managedBy: Invalid value: "me": must be a path with a domain, such as example.com/name, '
            "of at most 63",
            id="manager",
        ),
    ],
)
def test_refused(job_spec: Object, message: str) -> None:
    """The Job would be refused where no user looks, so its runtime is refused."""
    assert problems(job_spec, pod=dict(NEVER)) == [message]


@pytest.mark.parametrize(
    "job_spec",
    [
        pytest.param({}, id="nothing"),
        pytest.param(
            failure(action="FailIndex", onExitCodes=EXIT_CODES) | {"backoffLimitPerIndex": 0, "maxFailedIndexes": 2},
            id="indexes",
        ),
        pytest.param(success(succeededIndexes="0", succeededCount=1), id="success"),
    ],
)
def test_accepted(job_spec: Object) -> None:
    """What Kubernetes accepts passes."""
    assert problems(job_spec, pod=dict(NEVER)) == []


def test_a_failure_policy_needs_pods_that_do_not_restart() -> None:
    """JobSet lets pods restart when the template does not say, which does not go with a podFailurePolicy."""
    rule = "must be Never when podFailurePolicy is set"
    assert problems(failure(onExitCodes=EXIT_CODES)) == [
        f'{JOB}.template.spec.restartPolicy: Invalid value: "OnFailure": {rule}'
    ]


def test_only_indexed_jobs_have_indexes() -> None:
    """The exporter may be without indexes, and then cannot have rules about them."""
    exporter = replicated_job("exporter", {"name": "model-exporter", "image": "i"})
    exporter["template"]["spec"] |= {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1}
    info = extract(train_job(), runtime(replicated_job("node"), exporter))

    (error,) = check_jobs(info)
    assert error.field.endswith("replicatedJobs[exporter].template.spec.backoffLimitPerIndex")
    assert error.message == "Forbidden: completionMode must be Indexed"


def claim(name: str = "data", **spec: Any) -> Object:
    """A volume claim of a JobSet."""
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": whole | spec}


MOUNTED = {"container": {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}}


@pytest.mark.parametrize(
    ("claims", "pod", "messages"),
    [
        pytest.param([claim()], MOUNTED, [], id="mounted"),
        pytest.param(
            [claim()],
            {},
            [f'{TEMPLATES}[0].metadata.name: Invalid value: "data": no container mounts a volume of this name'],
            id="not-mounted",
        ),
        pytest.param(
            [claim(), claim()], MOUNTED, [f'{TEMPLATES}[1].metadata.name: Duplicate value: "data"'], id="twice"
        ),
        pytest.param(
            [claim()],
            MOUNTED | {"volumes": [{"name": "data", "emptyDir": {}}]},
            [f'{TEMPLATES}[0].metadata.name: Invalid value: "data": is the name of a volume of the pods, too'],
            id="volume",
        ),
        pytest.param(
            [claim(accessModes=[], resources={})],
            MOUNTED,
            [
                f"{TEMPLATES}[0].spec.accessModes: Required value: at least one access mode",
                f"{TEMPLATES}[0].spec.resources.requests[storage]: Required value",
            ],
            id="claiming-nothing",
        ),
    ],
)
def test_volume_claims(claims: list[Object], pod: Object, messages: list[str]) -> None:
    """Claims are whole, have names of their own and are used."""
    assert problems({}, pod=dict(pod), volumeClaimPolicies=[{"templates": claims}]) == messages


def test_names_of_volume_claims() -> None:
    """The name of a TrainJob is part of the names of its claims."""
    name = "d" * 60
    job = replicated_job("node", {"name": "trainer", "volumeMounts": [{"name": name, "mountPath": "/d"}]})
    train = train_job()
    info = extract(train, runtime(job, jobset={"volumeClaimPolicies": [{"templates": [claim(name)]}]}))

    (error,) = check_jobs(info)
    assert error.field == "metadata.name"
    assert f"the claim is called {name}-{train.metadata.name}, of at most 63 characters" in error.message
