"""Gangs of Kubernetes' Workload API: why one is not placed, and that its preemption is a disruption."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import train_job
from tests.plugins.test_jobset import static_reader
from tests.plugins.test_jobset_pod_problems import RESTARTING, crashed, going, jobset, pod, reported, waiting
from trainer.api.trainjob import TrainJob
from trainer.framework import Outcome
from trainer.kube.objects import Object
from trainer.plugins.jobset import JobSetPlugin
from trainer.workloads.scheduling_groups import POD_GROUPS

NAME = "demo-trainer-0123456789"
OWN = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
OF_GANG = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"
COUNTED = "pod group is unschedulable, minCount (4) cannot be satisfied: 2 scheduled, 0 remaining"
IN_NO_DOMAIN = "0/2 placements are available, first placement status: pod group is unschedulable"
PREEMPTS = "pod group is waiting for preemption to complete"
REFUSED = "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 1000"
WAITS_FOR_IT = "waits for its PodGroup, which the manager makes where the cluster serves the Workload API"
NOBODY = "no scheduler called default-scheduler has looked at it; is one installed under this name, and does it run?"
RACK: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
AT = "2026-01-01T00:00:05Z"


def member(index: int, message: str | None = None, *, job: str = "node") -> Object:
    """A pod of a gang without a node, of which its scheduler says this."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    name = f"demo-{job}-0-{index}-abcde"
    return pod(name, conditions=[said] if message else []) | {"spec": {"schedulingGroup": {"podGroupName": NAME}}}


def placed(index: int, *, job: str = "node") -> Object:
    """A pod that runs."""
    return pod(f"demo-{job}-0-{index}-abcde", phase="Running")


def ganged(**fields: Any) -> Object:
    """The JobSet of a gang, with a launcher that is no member."""
    template = {"spec": {"schedulingGroup": {"podGroupName": NAME}}}
    jobs = [
        {"name": "launcher", "template": {"spec": {"template": {"spec": {}}}}},
        {"name": "node", "template": {"spec": {"parallelism": 4, "template": template}}},
    ]
    return jobset(spec={"replicatedJobs": jobs}, **fields)


def group(*conditions: Object, least: int = 4, version: str = "v1beta1", **spec: Any) -> Object:
    """The PodGroup."""
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}} | spec,
        "status": {"conditions": list(conditions)},
    }


def condition(kind: str, status: str = "True", reason: str = "Scheduled", message: str = "", at: str = AT) -> Object:
    """A condition of a PodGroup."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def members(*messages: str | None) -> list[Object]:
    """The pods of a gang without nodes, by what is said of each."""
    return [member(index, message) for index, message in enumerate(messages)]


@pytest.mark.parametrize(
    ("pods", "pod_group", "expected"),
    [
        pytest.param(
            members(OF_GANG, OF_GANG, OWN, OF_GANG),
            group(),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit: at most 3 of them have a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-2-abcde: {OWN}",
            ),
            id="one-has-no-place",
        ),
        pytest.param(
            members(OF_GANG, OF_GANG, OWN, OF_GANG),
            group(condition("PodGroupInitiallyScheduled")),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit: at most 3 of them have a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-2-abcde: {OWN}",
            ),
            id="starts-again",
        ),
        pytest.param(
            members(COUNTED, COUNTED, OWN, COUNTED),
            group(),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit: at most 2 of them have a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-2-abcde: {OWN}",
            ),
            id="counted-by-the-scheduler",
        ),
        pytest.param(
            members(OWN, OWN, OWN, OWN),
            group(),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit: none of them has a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-0-abcde: {OWN}",
            ),
            id="none-has-a-place",
        ),
        pytest.param(
            members(*[OWN] * 20),
            group(least=20),
            (
                "Unschedulable",
                "the gang of 20 pods does not fit: none of them has a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-0-abcde: {OWN}",
            ),
            id="none-of-many-has-a-place",
        ),
        pytest.param(
            members(*[OWN] * 18, OF_GANG),
            group(least=19),
            (
                "Unschedulable",
                "the gang of 19 pods does not fit: at most 3 of them have a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-0-abcde: {OWN}",
            ),
            id="many-are-rounded",
        ),
        pytest.param(
            members(*[OF_GANG] * 4),
            group(condition("PodGroupScheduled", "False", "Unschedulable", COUNTED), version="v1alpha2"),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit: at most 2 of them have a place",
                f"for example pod demo-node-0-0-abcde: {OF_GANG}",
            ),
            id="the-pod-group-knows-more",
        ),
        pytest.param(
            members(*[IN_NO_DOMAIN] * 4),
            group(**RACK),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit into one domain of example.com/rack",
                f"for example pod demo-node-0-0-abcde: {IN_NO_DOMAIN}",
            ),
            id="topology",
        ),
        pytest.param(
            members(*[OF_GANG] * 4),
            group(),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit as a whole",
                f"for example pod demo-node-0-0-abcde: {OF_GANG}",
            ),
            id="nothing-but-the-whole",
        ),
        pytest.param(
            members(PREEMPTS, PREEMPTS, OWN),
            group(condition("PodGroupInitiallyScheduled", "False", "Unschedulable", PREEMPTS), least=2),
            (
                "Unschedulable",
                "the gang of 2 pods waits until the pods that it preempts have ended",
                f"too little nvidia.com/gpu: for example pod demo-node-0-2-abcde: {OWN}",
            ),
            id="preempts-others",
        ),
        pytest.param(
            members(*[REFUSED] * 4),
            group(),
            (
                "Unschedulable",
                "the scheduler refuses the gang of 4 pods",
                f"for example pod demo-node-0-0-abcde: {REFUSED}",
            ),
            id="refused",
        ),
        pytest.param(
            [placed(0), placed(1), member(2, OWN)],
            group(least=2),
            ("Unschedulable", "1 pod cannot start", f"too little nvidia.com/gpu: pod demo-node-0-2-abcde: {OWN}"),
            id="more-than-the-gang-needs",
        ),
        pytest.param(
            [*members(OF_GANG, OF_GANG, OWN, OF_GANG), placed(0, job="launcher")],
            group(),
            (
                "Unschedulable",
                "the gang of 4 pods does not fit: at most 3 of them have a place",
                f"too little nvidia.com/gpu: for example pod demo-node-0-2-abcde: {OWN}",
            ),
            id="a-launcher-is-no-member",
        ),
        pytest.param(
            members(None, None),
            group(),
            (
                "GangIncomplete",
                "the gang of 4 pods is not complete",
                "for example pod demo-node-0-0-abcde: waits for the others: 2 of 4 exist",
            ),
            id="incomplete",
        ),
        pytest.param(
            members(None),
            None,
            (
                "NoPodGroup",
                f"PodGroup {NAME} of the pods does not exist",
                f"pod demo-node-0-0-abcde: {WAITS_FOR_IT}",
            ),
            id="no-pod-group",
        ),
        pytest.param(
            members(f'waiting for pods\'s pod group "{NAME}" to appear in scheduling queue'),
            None,
            (
                "NoPodGroup",
                f"PodGroup {NAME} of the pods does not exist",
                f"pod demo-node-0-0-abcde: {WAITS_FOR_IT}",
            ),
            id="no-pod-group, as the scheduler says",
        ),
        pytest.param(
            members(f"PodGroup default/{NAME} not found"),
            None,
            (
                "NoPodGroup",
                f"PodGroup {NAME} of the pods does not exist",
                f"pod demo-node-0-0-abcde: {WAITS_FOR_IT}",
            ),
            id="no-pod-group, in other words",
        ),
        pytest.param(
            members(*[None] * 4),
            group(),
            (
                "NoScheduler",
                "at least 4 pods cannot start",
                f"for example pod demo-node-0-0-abcde: {NOBODY}",
            ),
            id="no-scheduler",
        ),
    ],
)
def test_a_gang_that_waits(pods: list[Object], pod_group: Object | None, expected: tuple[str, ...]) -> None:
    """It says how many of minCount have a place at most, and why not the others."""
    found = reported(ganged(active=1), *pods, *([pod_group] if pod_group else []))
    assert found == [("Pending", *expected)]


def test_a_gang_whose_pod_group_cannot_be_read() -> None:
    """Its pods are waited for one by one: that the PodGroup does not exist is not known."""
    reader = static_reader(ganged(active=1), *members(OF_GANG))
    reader.unserved |= set(POD_GROUPS)
    [problem] = JobSetPlugin(reader).train_job_status(train_job()).problems
    assert (problem.reason, problem.headline) == ("Unschedulable", "1 pod cannot start")


def test_other_reasons_stay() -> None:
    """An image that cannot be pulled is a reason beside the gang."""
    objects = [*members(OF_GANG, OWN, OF_GANG), waiting("ErrImagePull", "not found", "demo-launcher-0-0-abcde")]
    reasons = [reason for _, reason, _, _ in reported(ganged(active=1), group(), *objects)]
    assert reasons == ["ImagePullBackOff", "Unschedulable"]


def restarted(at: str) -> TrainJob:
    """A TrainJob whose last restart was over at this time."""
    over = {"type": "Restarting", "status": "False", "reason": "RestartEnded", "lastTransitionTime": at}
    job = train_job().to_object()
    return TrainJob.from_object(job | {"status": {"conditions": [over]}})


PREEMPTED = condition("DisruptionTarget", reason="PreemptionByScheduler", message="for a PodGroup of a higher priority")
BY_SCHEDULER = (
    f"PodGroup {NAME} was preempted for a pod of a higher priority (PreemptionByScheduler: for a PodGroup of a higher "
    "priority)"
)


@pytest.mark.parametrize(
    ("pods", "job", "cause"),
    [
        pytest.param([], train_job(), BY_SCHEDULER, id="gone"),
        pytest.param([], restarted("2026-01-01T00:00:04Z"), BY_SCHEDULER, id="after-a-former-restart"),
        pytest.param([], restarted("2026-01-01T00:00:05Z"), RESTARTING["message"], id="of-a-former-attempt"),
        pytest.param([going("a")], train_job(), BY_SCHEDULER, id="deleted-by-whom-is-not-known"),
        pytest.param(
            [crashed("a", 5, 1)], train_job(), "pod a: container trainer exited with code 5", id="a-pod-has-failed"
        ),
        pytest.param(
            [going("a", made="2026-01-01T00:00:06Z", at=7)],
            train_job(),
            "pod a was deleted; by whom is not known",
            id="before-the-pods-were-made",
        ),
    ],
)
@pytest.mark.parametrize("version", ["v1beta1", "v1alpha2"])
def test_preemption_of_a_gang(pods: list[Object], job: TrainJob, cause: str, version: str) -> None:
    """What the PodGroup says is the cause of a restart of which the pods tell nothing, or nothing any more."""
    objects = (ganged(restarts=1, conditions=[RESTARTING]), group(PREEMPTED, version=version), *pods)
    *_, problem = JobSetPlugin(static_reader(*objects)).train_job_status(job).problems
    assert problem.details() == cause


def test_a_preempted_gang_that_fails() -> None:
    """A training that does not start again has failed for the preemption, and not by its program."""
    failed = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "jobset failed"}
    outcome = JobSetPlugin(static_reader(ganged(conditions=[failed]), group(PREEMPTED))).terminal_condition(train_job())
    assert isinstance(outcome, Outcome)
    assert outcome.culprit is not None
    assert (outcome.culprit.text, outcome.culprit.may_be_of_job) == (BY_SCHEDULER, False)
    assert outcome.culprit.headline() == f"gang: {BY_SCHEDULER.partition(f'{NAME} ')[2]}"


def test_a_restarted_gang_that_fails() -> None:
    """A preemption before a restart that the manager has not seen is no cause of a failure after it."""
    failed = {"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "jobset failed"}
    over = RESTARTING | {"status": "False", "lastTransitionTime": "2026-01-01T00:00:06Z"}
    reader = static_reader(ganged(restarts=1, conditions=[failed, over]), group(PREEMPTED))
    outcome = JobSetPlugin(reader).terminal_condition(train_job())
    assert isinstance(outcome, Outcome)
    assert outcome.culprit is None
