"""Why a TrainJob does not run, as its page is answered."""

from __future__ import annotations

import threading

import anyio
import anyio.from_thread
import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from tests.explain.samples import jobset, node, train_job, unscheduled, waiting
from trainer.explain import Explanation, Needs, Snapshot, explain, needs_of, reading
from trainer.explain.target import CommandOptions
from trainer.kube.errors import ForbiddenError, InternalError, UnauthorizedError
from trainer.kube.resource import NODES, PODS
from trainer_dashboard.requests import explanations

PATH = "/api/trainjobs/default/demo/explanation"
HOSTILE = "<img src=x onerror=alert(1)>"


async def test_cause(client: UserClient) -> None:
    """The first cause has its object, the remedy and a command that asks the same cluster."""
    for obj in (train_job(), jobset(nodes=1), waiting("ImagePullBackOff", f"Back-off pulling image {HOSTILE}")):
        client.add(obj)
    target = CommandOptions(" --kubeconfig '/k c'")
    async with visiting(client, target=target) as visitor:
        status, answer = await visitor.json(PATH)
    (cause,) = answer["causes"]
    assert (status, answer["verdict"], answer["unread"]) == (200, "waiting", [])
    assert (cause["reason"], cause["about"]) == ("ImagePullBackOff", "Pod demo-node-0-0-abcde")
    assert HOSTILE in cause["message"]
    assert cause["remedy"]
    assert cause["command"] == "kubectl describe pod demo-node-0-0-abcde -n default --kubeconfig '/k c'"


async def test_what_may_not_be_read(client: UserClient) -> None:
    """What the user may not read is named, and the answer is made of the rest."""
    message = "0/1 nodes are available: 1 Insufficient cpu."
    for obj in (train_job(), jobset(nodes=1), unscheduled(message), node()):
        client.add(obj)
    client.faults.fail(ForbiddenError(403, "nodes is forbidden"), verb="list", resource=NODES, times=None)
    async with visiting(client) as visitor:
        _, answer = await visitor.json(PATH)
    assert [cause["reason"] for cause in answer["causes"]] == ["Unschedulable"]
    assert answer["unread"] == [{"what": "nodes", "why": "nodes is forbidden"}]


async def test_many_pods(client: UserClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the explanation of a large TrainJob is made, the server answers others."""
    count = 2000
    for obj in (train_job(), jobset(nodes=count)):
        client.add(obj)
    for index in range(count):
        client.add(waiting("ImagePullBackOff", "Back-off pulling image", index=index))
    begun, others_are_answered = anyio.Event(), threading.Event()
    threads = set()

    def needs_in_a_thread(snapshot: Snapshot) -> Needs:
        threads.add(threading.get_ident())
        return needs_of(snapshot)

    def explain_after_others(snapshot: Snapshot) -> Explanation:
        anyio.from_thread.run_sync(begun.set)
        assert others_are_answered.wait(60)
        return explain(snapshot)

    async with visiting(client) as visitor, anyio.create_task_group() as tasks:

        async def look() -> None:
            monkeypatch.setattr(explanations, "explain", explain_after_others)
            monkeypatch.setattr(reading, "needs_of", needs_in_a_thread)
            _, answer = await visitor.json(PATH)
            (cause,) = answer["causes"]
            assert cause["reason"] == "ImagePullBackOff"
            assert "pods cannot start" in cause["message"]

        tasks.start_soon(look)
        with anyio.fail_after(60):
            await begun.wait()
        assert (await visitor.json("/api/cluster"))[0] == 200
        assert threads
        assert threading.get_ident() not in threads
        others_are_answered.set()


async def test_what_holds_nothing(client: UserClient) -> None:
    """A suspended TrainJob is explained without its pods; one that is not there has no explanation."""
    client.add(train_job(suspend=True))
    async with visiting(client) as visitor:
        _, answer = await visitor.json(PATH)
        assert [cause["reason"] for cause in answer["causes"]] == ["Suspended"]
        assert await visitor.json("/api/trainjobs/default/other/explanation") == (200, None)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(UnauthorizedError(401, "the token has expired"), 401, id="expired-token"),
        pytest.param(InternalError(500, "etcd is away"), 200, id="noted-as-unread"),
    ],
)
async def test_errors(client: UserClient, error: Exception, status: int) -> None:
    """An expired token is no answer; what the server fails to read alone is noted."""
    client.add(train_job())
    client.faults.fail(error, verb="list", resource=PODS, times=None)
    async with visiting(client) as visitor:
        answered, answer = await visitor.json(PATH)
    assert answered == status
    assert str(error) in str(answer)


async def test_unfit_train_job(client: UserClient) -> None:
    """A TrainJob of another definition is refused with its field."""
    client.add(train_job(runtimeRef={"name": 5}))
    async with visiting(client) as visitor:
        status, answer = await visitor.json(PATH)
    assert (status, "spec.runtimeRef.name" in answer["error"]) == (422, True)
