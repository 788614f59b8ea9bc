"""`trainer explain` as its users type it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import ConnectedClient
from tests.explain.samples import (
    JOB,
    condition,
    container,
    event,
    jobset,
    lost,
    node,
    pod,
    running,
    train_job,
    unscheduled,
    waiting,
)
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.options import cluster_options
from trainer.explain import Cause, Explanation, Subject, Verdict
from trainer.explain.suspension import LOCAL_QUEUES, WORKLOADS
from trainer.explain.target import CommandOptions
from trainer.kube.errors import ForbiddenError, InternalError, UnauthorizedError
from trainer.kube.objects import Object
from trainer.kube.resource import EVENTS, NODES, PODS
from trainer.kube.rest.connection import ConnectionOptions
from trainer.plugins import coscheduling
from trainer.v1alpha1.client import SERVED
from trainer.workloads.scheduling_groups import POD_GROUPS
from trainer_kube_testing import FakeClient

QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}
MEMBER = {"labels": {coscheduling.POD_GROUP_LABEL: "x"}}
NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."


def without_status(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "status"}


def asked(client: FakeClient) -> list[str]:
    """The requests, without their order."""
    return sorted(f"{request.verb} {request.resource.plural}" for request in client.requests)


@pytest.mark.parametrize(
    ("objects", "requests", "code", "word"),
    [
        pytest.param(
            [train_job(state="Running"), jobset(ready=1), running(0), running(1)],
            ["get jobsets", "get trainjobs", "list pods"],
            0,
            "is running",
            id="runs",
        ),
        pytest.param(
            [train_job(condition("Complete"), state="Complete")], ["get trainjobs"], 0, "has succeeded", id="complete"
        ),
        pytest.param(
            [train_job(condition("Failed", message="no"), state="Failed")],
            ["get trainjobs"],
            4,
            "has failed: Because: no",
            id="failed",
        ),
        pytest.param([train_job(suspend=True)], ["get trainjobs"], 3, "is waiting: Suspended", id="suspended"),
        pytest.param(
            [
                train_job(condition("Stalled", reason="NoProgress", message="no progress"), state="Stalled"),
                jobset(nodes=1, ready=1),
                running(),
            ],
            ["get jobsets", "get trainjobs", "list pods"],
            3,
            "makes no progress: NoProgress: no progress",
            id="stalled",
        ),
        pytest.param(
            [
                train_job(),
                jobset(),
                JOB,
                unscheduled(NO_CPU, metadata={"labels": {coscheduling.POD_GROUP_LABEL: "x"}}),
                node(),
            ],
            ["get jobsets", "get podgroups", "get trainjobs", "list events", "list jobs", "list nodes", "list pods"],
            3,
            "is waiting: Unschedulable",
            id="unschedulable-gang",
        ),
        pytest.param(
            [
                train_job(),
                jobset(),
                JOB,
                unscheduled("pod group is unschedulable", spec={"schedulingGroup": {"podGroupName": "x"}}),
                node(),
                {
                    "apiVersion": "scheduling.k8s.io/v1alpha2",
                    "kind": "PodGroup",
                    "metadata": {"name": "x", "namespace": "default"},
                    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
                },
            ],
            [
                "get jobsets",
                *["get podgroups"] * 2,  # there is none of the version of Kubernetes 1.37
                *("get trainjobs", "list events", "list jobs", "list nodes", "list pods"),
            ],
            3,
            "also: GangIncomplete: the gang needs 2 pods at the same time, and 1 exist",
            id="gang-of-kubernetes-1.36",
        ),
        pytest.param(
            [train_job(), jobset(nodes=1, ready=1), lost(), node()],
            ["get jobsets", "get nodes", "get trainjobs", "list pods"],
            3,
            "is stopping: NodeNotReady: node a is not ready since",
            id="lost-node",
        ),
        pytest.param(
            [train_job(suspend=True, metadata=QUEUED)],
            ["get trainjobs", "list workloads"],
            3,
            "in Kueue's queue team-a",
            id="queued",
        ),
    ],
)
def test_requests(
    served: FakeClient, cluster: None, objects: list[Object], requests: list[str], code: int, word: str
) -> None:
    """What runs costs three requests, and what does not run those that its state makes worth it."""
    for resource in (coscheduling.POD_GROUPS, POD_GROUPS[-1], WORKLOADS[0]):
        served.serve(resource)
    for obj in objects:
        served.add(obj)

    result = CliRunner().invoke(app, "explain demo")

    assert (result.exit_code, result.stderr) == (code, "")
    assert f"TrainJob demo {word}" in result.stdout or word in result.stdout
    assert asked(served) == requests


@pytest.mark.parametrize(
    ("is_served", "said"),
    [
        pytest.param(True, "NoPodGroup: the pods are members of PodGroup x, which does not exist", id="no-pod-group"),
        pytest.param(False, "not read podgroups: the cluster does not serve podgroups.scheduling.k8s.io", id="no-kind"),
    ],
)
def test_a_pod_group_that_is_not_there(served: FakeClient, cluster: None, is_served: bool, said: str) -> None:
    """A kind that the cluster does not serve is no PodGroup that the manager makes again."""
    if is_served:
        served.serve(POD_GROUPS[0])
    message = "0/1 nodes are available: 1 Insufficient cpu."
    for obj in (
        train_job(),
        jobset(nodes=1),
        JOB,
        unscheduled(message, spec={"schedulingGroup": {"podGroupName": "x"}}),
    ):
        served.add(obj)

    result = CliRunner().invoke(app, "explain demo")

    assert said in result.stdout
    assert ("NoPodGroup" in result.stdout) is is_served
    assert message in result.stdout


def test_json(served: FakeClient, cluster: None) -> None:
    """Programs read verdict, causes, remedies and commands."""
    for obj in (train_job(), jobset(nodes=1), waiting("ImagePullBackOff", 'Back-off pulling image "none"')):
        served.add(obj)

    found = json.loads(CliRunner().invoke(app, "explain demo -o json").stdout)

    (cause,) = found.pop("causes")
    assert found == {"name": "demo", "namespace": "default", "verdict": "waiting", "notes": [], "unread": []}
    assert cause == {
        "reason": "ImagePullBackOff",
        "about": {"kind": "Pod", "name": "demo-node-0-0-abcde", "namespace": "default"},
        "message": '1 pod cannot start: pod demo-node-0-0-abcde: container trainer: Back-off pulling image "none"',
        "remedy": cause["remedy"],
        "command": "kubectl describe pod demo-node-0-0-abcde -n default",
        "fields": [],
        "details": [],
        "commands": [],
    }


def test_the_log_of_a_crashed_container(served: FakeClient, cluster: None) -> None:
    """The last lines are below the sentence, without control sequences."""
    last = {"terminated": {"exitCode": 1, "reason": "Error"}}
    status = container({"waiting": {"reason": "CrashLoopBackOff"}}, last=last, restarts=2)
    for obj in (train_job(), jobset(nodes=1), pod(phase="Running", containerStatuses=status)):
        served.add(obj)
    log = served.log("demo-node-0-0-abcde", "default", "trainer")
    log.write(b"start\n\x1b[31mValueError: no data\x1b[0m\n")
    log.end()

    result = CliRunner().invoke(app, "explain demo")

    assert "  | ValueError: no data\n" in result.stdout
    assert "kubectl logs demo-node-0-0-abcde -c trainer --previous -n default" in result.stdout


def test_the_log_before_a_restart(served: FakeClient, cluster: None) -> None:
    """A container that runs again has the lines of its end in the log before."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": now}}
    status = container({"running": {}}, last=last, restarts=1, ready=True)
    for obj in (train_job(), jobset(nodes=1, ready=1), pod(phase="Running", containerStatuses=status)):
        served.add(obj)
    log = served.log("demo-node-0-0-abcde", "default", "trainer")
    log.write(b"allocating\n")
    log.restart()
    log.write(b"begins anew\n")

    result = CliRunner().invoke(app, "explain demo")

    assert "  | allocating\n" in result.stdout
    assert "begins anew" not in result.stdout


def test_reads_that_fail(served: FakeClient, cluster: None) -> None:
    """What the server fails to answer is listed once; without credentials there is no answer."""
    claim = {"nodeName": None, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    for obj in (train_job(), jobset(nodes=1), unscheduled(NO_CPU, spec=claim)):
        served.add(obj)
    served.faults.fail(InternalError(500, "the database is down"), resource=EVENTS, times=9)
    result = CliRunner().invoke(app, "explain demo")
    assert (result.exit_code, result.stdout.count("not read events: the database is down")) == (3, 1)
    assert "Insufficient cpu" in result.stdout.splitlines()[0]

    served.faults.fail(UnauthorizedError(401, "Unauthorized"), resource=NODES, times=9)
    assert CliRunner().invoke(app, "explain demo").exit_code == 1


@pytest.mark.parametrize(
    ("resource", "word"),
    [
        pytest.param(NODES, "Insufficient cpu", id="nodes"),
        pytest.param(EVENTS, "a node has enough cpu, which other pods use", id="events"),
        pytest.param(PODS, "1 pod cannot start: as the manager saw it", id="pods"),
    ],
)
def test_what_may_not_be_read(served: FakeClient, cluster: None, resource: Any, word: str) -> None:
    """A user without a right gets an answer of the rest, which says what is missing."""
    seen = condition("Pending", reason="Unschedulable", message="1 pod cannot start: as the manager saw it")
    for obj in (train_job(seen, state="Pending"), jobset(nodes=1), unscheduled(NO_CPU), node()):
        served.add(obj)
    served.faults.fail(ForbiddenError(403, f"{resource.plural} is forbidden"), resource=resource, times=9)

    result = CliRunner().invoke(app, "explain demo")

    assert result.exit_code == 3
    assert word in result.stdout.splitlines()[0]
    assert f"  not read {resource.plural}: {resource.plural} is forbidden\n" in result.stdout


@pytest.mark.parametrize(
    ("options", "job", "remedy", "command"),
    [
        pytest.param(
            "--context lab",
            train_job(suspend=True),
            "resume it: trainer resume demo -n default --context lab",
            "kubectl get trainjob demo -o yaml --show-managed-fields -n default --context lab",
            id="context",
        ),
        pytest.param(
            "--kubeconfig FILE --context 'a b'",
            train_job(condition("Failed", message="no"), state="Failed"),
            "--kubeconfig FILE --context 'a b', then submit it again",
            "trainer logs demo -n default --kubeconfig FILE --context 'a b'",
            id="kubeconfig",
        ),
        pytest.param(
            "",
            train_job(suspend=True),
            "resume it: trainer resume demo",
            "kubectl get trainjob demo -o yaml --show-managed-fields -n default",
            id="neither",
        ),
    ],
)
def test_commands_ask_the_same_cluster(
    served: FakeClient, cluster: None, tmp_path: Path, options: str, job: Object, remedy: str, command: str
) -> None:
    """What is printed can be pasted, whichever cluster the options of the user lead to."""
    file = tmp_path / "kubeconfig"
    file.write_text("{}")
    served.add(job)

    result = CliRunner().invoke(app, f"explain demo -o json {options}".replace("FILE", str(file)))

    (cause,) = json.loads(result.stdout)["causes"]
    assert remedy.replace("FILE", str(file)) in cause["remedy"]
    assert cause["command"] == command.replace("FILE", str(file))


def test_kubectl_gets_the_cluster_of_trainer_up() -> None:
    """Our own commands find it by themselves."""
    remedy = "create it (kubectl create serviceaccount a -n b), then trainer resume demo."
    describe, delete = "kubectl describe pod a", "kubectl delete pod a"
    asked = Cause("Unschedulable", Subject("Pod", "a"), "", remedy, describe, commands=(delete,))
    connected = ConnectionOptions(kubeconfig=Path("/state/kubeconfig"))
    (cause,) = (
        CommandOptions(cluster_options(connected.kubeconfig, None))
        .with_options(Explanation(Verdict.WAITING, (asked,)))
        .causes
    )
    assert cause.remedy == remedy.replace("-n b", "-n b --kubeconfig /state/kubeconfig")
    assert cause.command == f"{describe} --kubeconfig /state/kubeconfig"
    assert cause.commands == (f"{delete} --kubeconfig /state/kubeconfig",)


def test_hostile_texts(served: FakeClient, cluster: None) -> None:
    """Control characters are shown, not sent to the terminal, and a megabyte is cut."""
    message = "\x1b]0;title\x07\x9b31m" + "x" * 1_000_000
    said = event("Job", "demo-node-0", "uid-of-job", "FailedCreate", message)
    for obj in (train_job(), jobset(nodes=2), JOB, said, waiting("ErrImagePull", message)):
        served.add(obj)

    for arguments in ("explain demo", "explain demo -o json"):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 3
        assert all(character.isprintable() or character == "\n" for character in result.stdout)
        assert len(result.stdout) < 20_000


def test_events_of_a_large_namespace(served: FakeClient, cluster: None) -> None:
    """Two thousand are read; that there are more is said."""
    for obj in (train_job(), jobset(nodes=1), pod(), JOB):
        served.add(obj)
    for index in range(2_001):
        said = event("Pod", f"other-{index:04}", "u", "BackOff", "no")
        served.add(said)

    result = CliRunner().invoke(app, "explain demo")

    assert "not read events: there are more than 2000 in the namespace" in result.stdout
    assert asked(served).count("list events") == 4


def test_position_in_the_queue(served: FakeClient, cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kueue's visibility API, where it is served, says how many are before this one."""
    served.serve(WORKLOADS[1])
    labels = {"kueue.x-k8s.io/job-uid": "uid-of-demo"}
    served.add(train_job(suspend=True, metadata=QUEUED))
    served.add(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": "w", "namespace": "default", "labels": labels},
            "spec": {"queueName": "team-a"},
            "status": {"conditions": [condition("QuotaReserved", "False", "Pending", "insufficient unused quota")]},
        }
    )
    item = {"metadata": {"name": "w"}, "positionInLocalQueue": 4, "positionInClusterQueue": 9}
    original = served.get

    async def get(resource: Any, name: str, namespace: str | None = None, *, subresource: str | None = None) -> Object:
        if resource == LOCAL_QUEUES:
            assert (name, subresource) == ("team-a", "pendingworkloads")
            return {"items": [{"metadata": {"name": "other"}}, item]}
        return await original(resource, name, namespace, subresource=subresource)

    monkeypatch.setattr(served, "get", get)

    first = CliRunner().invoke(app, "explain demo").stdout.splitlines()[0]

    assert "at position 5 (10 of all that share its quota); insufficient unused quota" in first


def test_v1alpha1(monkeypatch: pytest.MonkeyPatch, served: FakeClient, cluster: None) -> None:
    """A cluster that serves the released version gets the same answers."""
    assert isinstance(served, ConnectedClient)
    monkeypatch.setattr(served, "version", "v1alpha1")
    served.withdraw(TRAIN_JOBS)
    served.serve(SERVED[TRAIN_JOBS])
    version = {"apiVersion": "trainer.kubeflow.org/v1alpha1"}
    owner = {"kind": "TrainJob", "name": "demo", "uid": "uid-of-demo", "controller": True} | version
    served.add(train_job() | version)
    served.add(jobset(nodes=1, metadata={"ownerReferences": [owner]}))
    served.add(waiting("InvalidImageName", "couldn't parse image name"))

    result = CliRunner().invoke(app, "explain demo")

    assert result.exit_code == 3
    assert result.stdout.startswith("TrainJob demo is waiting: InvalidImageName: 1 pod cannot start")


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param("explain nope", 1, "there is no TrainJob nope in namespace default", id="no-such-job"),
        pytest.param("explain demo -o xml", 2, "'xml' is not one of", id="format"),
    ],
)
def test_mistakes(served: FakeClient, cluster: None, arguments: str, code: int, complaint: str) -> None:
    """What cannot be answered is one line."""
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    assert complaint in result.stderr
