"""What claims for checkpoints lack."""

from __future__ import annotations

import pytest

from tests.explain.samples import (
    JOB,
    answer,
    condition,
    event,
    jobset,
    train_job,
    unscheduled,
    waiting,
)
from trainer.kube.objects import Object

POD = "demo-node-0-0-abcde"
MOUNT = {"name": "trainer-checkpoints", "mountPath": "/checkpoints", "subPath": "demo-uid-of-demo"}
CONTAINERS = [{"name": "trainer", "volumeMounts": [MOUNT]}]
NO_DIRECTORY = 'failed to create subPath directory for volumeMount "trainer-checkpoints" of container "trainer"'
UNKNOWN = 'MountVolume.SetUp failed for volume "trainer-checkpoints" : persistentvolumeclaim "data" not found'
UNSCHEDULED = '0/3 nodes are available: persistentvolumeclaim "data" not found. not found'
MISSING = "create the claim data, which is to keep the checkpoints, in namespace default: the pods start then"
CLAIMS, DATA = "kubectl get pvc -n default", "kubectl describe pvc data -n default"


def with_claim(name: str = "data") -> Object:
    volume = {"name": "trainer-checkpoints", "persistentVolumeClaim": {"claimName": name}}
    return jobset(nodes=1, containers=CONTAINERS, volumes=[volume])


@pytest.mark.parametrize(
    ("objects", "remedy", "command"),
    [
        pytest.param([unscheduled(UNSCHEDULED)], MISSING, CLAIMS, id="missing-for-the-scheduler"),
        pytest.param(
            [waiting("ContainerCreating", ""), event("Pod", POD, "uid-of-pod-0", "FailedMount", UNKNOWN)],
            MISSING,
            CLAIMS,
            id="missing-for-the-kubelet",
        ),
        pytest.param(
            [waiting("CreateContainerConfigError", NO_DIRECTORY)],
            "claim data is full or read-only, or lets the kubelet make no directory (NFS with root_squash): make room "
            "in it, or submit it again with another claim",
            DATA,
            id="no-directory",
        ),
    ],
)
def test_pods_that_do_not_start(objects: list[Object], remedy: str, command: str) -> None:
    """The claim is named, with what to do about it."""
    cause, *_ = answer(train_job(), with_claim(), JOB, *objects).causes
    assert (cause.remedy, cause.command) == (remedy, command)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        pytest.param("OSError: [Errno 28] No space left on device: '/checkpoints/a'", "claim data is full", id="full"),
        pytest.param(
            "OSError: [Errno 30] Read-only file system: '/checkpoints/a'", "claim data is read-only", id="read-only"
        ),
        pytest.param(
            "PermissionError: [Errno 13] Permission denied: '/checkpoints/a'",
            "the user of the container may not write in claim data",
            id="other-user",
        ),
        pytest.param("OSError: [Errno 28] No space left on device: '/tmp/a'", "its disk or volume is full", id="disk"),
    ],
)
def test_failures(line: str, remedy: str) -> None:
    """A training that could not write its checkpoint names the claim, and no other volume is mistaken for it."""
    text = f"node-0: {line}\npod {POD}: container trainer exited with code 1; jobset failed"
    failed = condition("Failed", reason="FailedJobs", message=text)
    annotated = {"annotations": {"trainer.kubeflow.org/checkpoints": "data/team-a"}}
    (cause,) = answer(train_job(failed, metadata=annotated)).causes
    assert cause.remedy.startswith(remedy)


def test_hostile_names() -> None:
    """What no claim can be called becomes part of no command."""
    cause, *_ = answer(train_job(), with_claim("--kubeconfig=/tmp/a"), JOB, unscheduled(UNSCHEDULED)).causes
    assert "kubeconfig" not in cause.command
