"""What is read beyond TrainJob, JobSet and pods."""

from __future__ import annotations

import pytest

from tests.explain.samples import (
    MADE,
    NOW,
    condition,
    container,
    jobset,
    lost,
    pod,
    running,
    train_job,
    unscheduled,
    waiting,
)
from trainer.explain import Needs, Snapshot, Unread, needs_of
from trainer.explain.gang import Membership
from trainer.explain.needs import has_children
from trainer.framework import FailedContainer
from trainer.kube.objects import Object
from trainer.plugins import coscheduling
from trainer.workloads.scheduling_groups import POD_GROUPS

QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
CLAIM = {"nodeName": None, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
ENDED = {"terminated": {"exitCode": 1, "finishedAt": MADE}}
OUT_OF_MEMORY = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": MADE}}
CRASHED = container({"waiting": {"reason": "CrashLoopBackOff"}}, last=ENDED, restarts=2)
MEMBER = {"labels": {"scheduling.x-k8s.io/pod-group": "demo"}}


@pytest.mark.parametrize(
    ("job", "objects", "needs"),
    [
        pytest.param(train_job(), (jobset(ready=1), running(0), running(1)), Needs(), id="runs"),
        pytest.param(train_job(condition("Complete")), (), Needs(), id="complete"),
        pytest.param(train_job(suspend=True), (), Needs(), id="suspended"),
        pytest.param(train_job(suspend=True, metadata=QUEUED), (), Needs(workload=True), id="queued"),
        pytest.param(train_job(), (jobset(suspend=True, metadata=QUEUED),), Needs(workload=True), id="jobset-queued"),
        pytest.param(train_job(), (jobset(), running(0)), Needs(events=True), id="a-pod-is-missing"),
        pytest.param(train_job(), (jobset(), waiting("ErrImagePull", "")), Needs(events=True), id="image"),
        pytest.param(train_job(), (jobset(), unscheduled("")), Needs(events=True, nodes=True), id="unscheduled"),
        pytest.param(train_job(), (jobset(ready=1), lost(0), lost(1)), Needs(lost_nodes=("a",)), id="lost-node"),
        pytest.param(
            train_job(), (jobset(), unscheduled(""), lost(1)), Needs(events=True, nodes=True), id="lost-and-unscheduled"
        ),
        pytest.param(train_job(), (jobset(), pod(spec=CLAIM)), Needs(events=True, claims=True), id="waits-for-a-claim"),
        pytest.param(
            train_job(),
            (jobset(), unscheduled("", metadata=MEMBER)),
            Needs(events=True, nodes=True, pod_group=Membership((coscheduling.POD_GROUPS,), "demo")),
            id="gang",
        ),
        pytest.param(
            train_job(),
            (jobset(), unscheduled("", spec={"schedulingGroup": {"podGroupName": "demo-trainer-1"}})),
            Needs(events=True, nodes=True, pod_group=Membership(POD_GROUPS, "demo-trainer-1")),
            id="gang-of-kubernetes",
        ),
        pytest.param(
            train_job(),
            (jobset(ready=1), pod(phase="Running", containerStatuses=CRASHED)),
            Needs(events=True, log=FailedContainer("", "demo-node-0-0-abcde", "trainer")),
            id="crashed",
        ),
        pytest.param(
            train_job(),
            (
                jobset(ready=1),
                pod(0, phase="Running", containerStatuses=container({"running": {}}, last=ENDED, restarts=1)),
                pod(1, phase="Running", containerStatuses=CRASHED),
            ),
            Needs(events=True, log=FailedContainer("", "demo-node-0-1-abcde", "trainer")),
            id="crashed-beside-one-that-runs-again",
        ),
        pytest.param(
            train_job(),
            (
                jobset(ready=1),
                pod(phase="Running", containerStatuses=container({"running": {}}, last=OUT_OF_MEMORY, restarts=1)),
            ),
            Needs(events=True, log=FailedContainer("", "demo-node-0-0-abcde", "trainer"), previous_log=True),
            id="out-of-memory-and-runs-again",
        ),
    ],
)
def test_needs(job: Object, objects: tuple[Object, ...], needs: Needs) -> None:
    """Only what its state makes worth a request."""
    assert needs_of(Snapshot(job, NOW, objects)) == needs


@pytest.mark.parametrize(
    ("objects", "needs"),
    [
        pytest.param((), Needs(), id="no-pods"),
        pytest.param((running(0), running(1)), Needs(), id="runs"),
        pytest.param((running(ready=False),), Needs(events=True), id="not-ready"),
        pytest.param(
            (unscheduled("", metadata=MEMBER),),
            Needs(events=True, pod_group=Membership((coscheduling.POD_GROUPS,), "demo")),
            id="gang",
        ),
    ],
)
def test_needs_without_the_right_to_jobsets(objects: tuple[Object, ...], needs: Needs) -> None:
    """Pods alone lead to their gang, their logs and their events."""
    unread = (Unread("jobsets", "forbidden"),)
    assert needs_of(Snapshot(train_job(), NOW, objects, unread=unread)) == needs


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(train_job(), True, id="goes-on"),
        pytest.param(train_job(suspend=True), False, id="suspended"),
        pytest.param(train_job(condition("Stopping"), suspend=True), True, id="suspended, and its pods stop"),
        pytest.param(train_job(condition("Failed")), False, id="ended"),
        pytest.param(train_job(condition("Created", "False")), False, id="blocked"),
        pytest.param(train_job(managedBy="kueue.x-k8s.io/multikueue"), False, id="elsewhere"),
        pytest.param(train_job() | {"status": {}}, True, id="untouched"),
    ],
)
def test_children(job: Object, expected: bool) -> None:
    """JobSet and pods are read where there are any."""
    assert has_children(job) == expected
