"""The server to which pods post their progress."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest

from tests.kube.reviewers import Reviewer
from tests.kube.webhook.serving import GivenCertificates, client_context
from tests.progress.pods import jobset, pod
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.progress import status_audience, status_path
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube import LeaderElectionOptions, Manager, ManagerOptions
from trainer.kube.errors import ConfigurationError, KubeError, TransportError
from trainer.kube.objects import Object, find_condition
from trainer.kube.resource import LEASES
from trainer.kube.serving.certificates import CaBundle
from trainer.progress.status_server import StatusServer, StatusServerOptions
from trainer.progress.writer import FIELD_MANAGER
from trainer.workloads import JOBSETS
from trainer_kube_testing import ManualClock, settle
from trainer_kube_testing.api_semantics import statuses

PATH = status_path("team-a", "digits")
POD = "digits-node-0-0-abcde"
TIME = "2026-01-01T00:00:00Z"
STALLED = {"type": "Stalled", "status": "True", "reason": "NoProgress", "lastTransitionTime": TIME, "message": "m"}


def train_job(name: str = "digits", uid: str = "train-job-uid", **status: Any) -> Object:
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": uid, "generation": 1},
        "spec": {"runtimeRef": {"name": "torch"}},
        "status": status,
    }


def token_of(pod_name: str = POD, uid: str = "", **claims: Any) -> str:
    """A token as the API server issues it to a pod."""
    bound = {"namespace": "team-a", "pod": {"name": pod_name, "uid": uid or f"uid-of-{pod_name}"}}
    payload = msgspec.json.encode({"kubernetes.io": bound} | claims)
    return f"header.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.signature"


TOKEN = token_of()


def owner(pod_name: str = POD, uid: str = "", account: str = "system:serviceaccount:team-a:default") -> Object:
    """What a TokenReview tells about the token of a pod."""
    extra = {
        "authentication.kubernetes.io/pod-name": [pod_name],
        "authentication.kubernetes.io/pod-uid": [uid or f"uid-of-{pod_name}"],
    }
    return {"username": account, "uid": "1", "groups": ["system:serviceaccounts"], "extra": extra}


def status(percentage: int = 42, **more: Any) -> Object:
    return {"trainerStatus": {"progressPercentage": percentage, "lastUpdatedTime": TIME} | more}


@dataclass
class Posts:
    """A server that runs, as a pod of the TrainJob `digits` sees it."""

    client: Reviewer
    clock: ManualClock
    manager: Manager
    session: aiohttp.ClientSession
    url: str

    async def post(
        self, body: Object | bytes | AsyncIterable[bytes], path: str = PATH, *, method: str = "POST", **headers: str
    ) -> tuple[int, Object]:
        """HTTP status and decoded answer."""
        data = msgspec.json.encode(body) if isinstance(body, dict) else body
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, path, data=data, headers=sent) as answer:
            return answer.status, await answer.json()

    @property
    def train_job(self) -> Object:
        (obj,) = self.client.objects(TRAIN_JOBS)
        return obj

    @property
    def shown(self) -> Object | None:
        """The progress that the TrainJob shows."""
        return (self.train_job.get("status") or {}).get("trainerStatus")

    @property
    def writes(self) -> int:
        return len(self.client.requests_of("apply"))


@asynccontextmanager
async def serving(
    *objects: Object,
    users: dict[str, Object] | None = None,
    limit: tuple[float, int] | None = None,
    leader_election: LeaderElectionOptions | None = None,
) -> AsyncIterator[Posts]:
    """A server for the TrainJob `digits` with its JobSet and pod, or for other objects."""
    clock = ManualClock()
    client = Reviewer({TOKEN: owner()} if users is None else users, resources=[TRAIN_JOBS, JOBSETS])
    client.audiences = [status_audience("team-a", "digits")]
    for obj in objects or (train_job(), jobset(), pod()):
        client.add(obj)
    manager = Manager(client, clock=clock, options=ManagerOptions(leader_election=leader_election))
    server = StatusServer(
        manager, GivenCertificates("127.0.0.1"), StatusServerOptions(host="127.0.0.1", port=0, limit=limit)
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await server.wait_for_start()
        connector = aiohttp.TCPConnector(ssl=client_context(), force_close=True)
        url = f"https://127.0.0.1:{server.address[1]}"
        async with aiohttp.ClientSession(url, connector=connector) as session:
            yield Posts(client, clock, manager, session, url)
        tasks.cancel_scope.cancel()


async def test_progress_is_written() -> None:
    """With the field manager of progress, and the answer is what was read."""
    async with serving() as server:
        body = status(estimatedRemainingSeconds=120, metrics=[{"name": "loss", "value": "0.5"}])
        assert await server.post(body) == (200, body)
        assert server.shown == {
            "progressPercentage": 42,
            "estimatedRemainingSeconds": 120,
            "estimatedRemainingTimeSummary": "2 minutes",
            "trainMetrics": {"loss": "0.5"},
            "lastUpdatedTime": TIME,
        }
        (managed,) = [each for each in server.train_job["metadata"]["managedFields"] if each.get("subresource")]
        assert managed["manager"] == FIELD_MANAGER


async def test_not_finite() -> None:
    """A metric that is not finite is counted and left out of the answer and of what is shown; the rest is shown."""
    body = b'{"trainerStatus":{"progressPercentage":42,"metrics":[{"name":"loss","value":NaN}],"lastUpdatedTime":"%s"}}'
    async with serving() as server:
        code, answer = await server.post(body % TIME.encode())
        assert (code, answer["trainerStatus"]) == (200, status(42, metrics=[])["trainerStatus"])
        assert server.shown == {"progressPercentage": 42, "lastUpdatedTime": TIME}
        assert server.manager.metrics.registry.get_sample_value("trainer_progress_dropped_values_total") == 1


async def test_nothing_to_write() -> None:
    """A post without a status is answered, and nothing is sent."""
    async with serving() as server:
        assert await server.post({"trainerStatus": None}) == (200, {})
        assert server.writes == 0


async def test_checkpoint() -> None:
    """A post without a checkpoint keeps the one that is shown, and a later one replaces it."""
    shown = {"step": 60, "time": "2025-12-31T00:00:01Z"}
    alone = {"checkpoint": shown, "lastUpdatedTime": "2026-02-01T00:00:00Z"}
    async with serving(train_job(trainerStatus=alone), jobset(), pod()) as server:
        assert (await server.post(status()))[0] == 200
        assert server.shown == {"progressPercentage": 42, "lastUpdatedTime": TIME, "checkpoint": shown}
        assert (await server.post(status(checkpoint={"step": 7})))[0] == 200
        assert server.shown["checkpoint"] == {"step": 7, "time": TIME}


async def test_newer_progress_stays() -> None:
    """What the log has reported since is not overwritten."""
    shown = {"progressPercentage": 60, "lastUpdatedTime": "2026-01-01T00:00:01Z"}
    async with serving(train_job(trainerStatus=shown), jobset(), pod()) as server:
        assert (await server.post(status()))[0] == 200
        assert server.shown == shown


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(STALLED, id="stalled"),
        pytest.param({"type": "Complete", "status": "True", "reason": "Done"}, id="ended"),
    ],
)
async def test_no_remaining_time_where_there_is_none(condition: Object) -> None:
    """A training that stalls or has ended shows none, and keeps its conditions."""
    async with serving(train_job(conditions=[condition]), jobset(), pod()) as server:
        assert (await server.post(status(estimatedRemainingSeconds=120)))[0] == 200
        assert server.shown == {"progressPercentage": 42, "lastUpdatedTime": TIME}
        assert find_condition(server.train_job, condition["type"]) == condition


async def test_the_cache_lags_behind() -> None:
    """What others have written meanwhile is read again, and newer progress among it stays."""
    async with serving() as server:
        server.client.faults.hold_watches()
        shown = {"progressPercentage": 60, "lastUpdatedTime": "2026-01-01T00:00:01Z"}
        server.client.add(train_job(trainerStatus=shown))
        assert (await server.post(status()))[0] == 200
        assert server.shown == shown
        server.client.add(train_job(state="Running"))
        assert (await server.post(status()))[0] == 200
        assert server.shown == {"progressPercentage": 42, "lastUpdatedTime": TIME}


async def test_another_of_the_same_name() -> None:
    """A TrainJob that was made again does not get the progress of the one before."""
    async with serving() as server:
        server.client.faults.hold_watches()
        server.client.remove(TRAIN_JOBS, "digits", "team-a")
        server.client.add(train_job(uid="another"))
        assert (await server.post(status()))[0] == 409
        server.client.remove(TRAIN_JOBS, "digits", "team-a")
        assert (await server.post(status()))[0] == 404


async def test_a_replica_that_does_not_lead_serves() -> None:
    """The Service names all of them."""
    lease = LeaderElectionOptions(name="l", namespace="ns")
    async with serving(leader_election=lease) as server:
        server.client.faults.fail(TransportError("down"), times=None, resource=LEASES)
        assert (await server.post(status()))[0] == 200
        assert server.shown is not None


OTHER_JOBSET = jobset() | {"metadata": jobset()["metadata"] | {"ownerReferences": []}}
FORGED = pod(owner="mine")


def token(*arguments: str, **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_of(*arguments, **claims)}"}


@pytest.mark.parametrize(
    ("headers", "objects", "message"),
    [
        pytest.param({"Authorization": ""}, (), "send the token of the pod", id="no-token"),
        pytest.param({"Authorization": "Bearer a\tb"}, (), "the token is that of no pod", id="odd"),
        pytest.param({"Authorization": "Bearer made-up"}, (), "the token is that of no pod", id="made-up"),
        pytest.param(
            {"Authorization": f"Bearer a.{'W1tb' * 1500}.c"}, (), "the token is that of no pod", id="no-claims"
        ),
        pytest.param(token(**{"kubernetes.io": {}}), (), "the token is that of no pod", id="bound-to-nothing"),
        pytest.param(token("other"), (), "the token is that of pod other", id="of-an-unknown-pod"),
        pytest.param(token(POD, "older"), (), f"the token is that of pod {POD}", id="of-a-pod-before"),
        pytest.param({}, (train_job(), jobset(), FORGED), f"the token is that of pod {POD}", id="forged-labels"),
        pytest.param(
            {},
            (train_job(), jobset(), pod(labels={JOBSET_NAME: "letters"}, owner="letters-node-0")),
            f"the token is that of pod {POD}",
            id="of-another-trainjob",
        ),
        pytest.param({}, (train_job(), OTHER_JOBSET, pod()), f"the token is that of pod {POD}", id="foreign-jobset"),
        pytest.param({}, (train_job(), pod()), f"the token is that of pod {POD}", id="without-a-jobset"),
    ],
)
async def test_forbidden(headers: dict[str, str], objects: tuple[Object, ...], message: str) -> None:
    """Only pods of the TrainJob may report about it; all others cost no review, and nothing of theirs is read."""
    async with serving(*objects) as server:
        code, answer = await server.post(b"no JSON", **headers)
        assert (code, answer["reason"], answer["status"]) == (403, "Forbidden", "Failure")
        assert answer["message"].startswith(message)
        assert (server.writes, server.client.reviews) == (0, [])


@pytest.mark.parametrize(
    "users",
    [
        pytest.param({}, id="unknown"),
        pytest.param({TOKEN: owner(account="system:serviceaccount:team-b:default")}, id="of-another-namespace"),
        pytest.param({TOKEN: owner(account="jane")}, id="of-a-person"),
        pytest.param({TOKEN: owner() | {"extra": {}}}, id="bound-to-nothing"),
        pytest.param({TOKEN: owner("other")}, id="of-another-pod"),
        pytest.param({TOKEN: owner(uid="older")}, id="of-a-pod-before"),
    ],
)
async def test_forged_tokens(users: dict[str, Object]) -> None:
    """Only what the API server confirms of a token counts."""
    async with serving(users=users) as server:
        code, answer = await server.post(b"no JSON")
        assert (code, answer["reason"]) == (403, "Forbidden")
        assert answer["message"].startswith("the API server knows no such token for trainer.kubeflow.org/v1alpha1/")
        assert server.writes == 0


async def test_forged_tokens_are_limited() -> None:
    """Whoever knows a pod gets ten reviews at once, and then one a second."""
    async with serving(users={}) as server:
        codes = [(await server.post(b"", **token(jti=str(number))))[0] for number in range(11)]
        assert codes == [403] * 10 + [429]
        assert len(server.client.reviews) == 10


async def test_forged_tokens_take_no_turns_of_a_pod() -> None:
    """Who knows a pod and has no token of it keeps it from nothing, for requests come from another address."""
    at_home = pod()
    at_home["status"]["podIPs"] = [{"ip": "127.0.0.1"}]
    async with serving(train_job(), jobset(), at_home) as server:
        connector = aiohttp.TCPConnector(ssl=client_context(), force_close=True, local_addr=("127.0.0.2", 0))
        async with aiohttp.ClientSession(server.url, connector=connector) as elsewhere:
            stranger = replace(server, session=elsewhere)
            codes = [(await stranger.post(status(), **token(jti=str(number))))[0] for number in range(11)]
        assert codes == [403] * 10 + [429]
        assert [(await server.post(status()))[0] for _ in range(11)] == [200] * 10 + [429]


async def test_a_token_for_another_trainjob() -> None:
    """The audience names one TrainJob, and the API server is asked for that of the path."""
    letters = jobset() | {"metadata": jobset()["metadata"] | {"name": "letters"}}
    own = pod(labels={JOBSET_NAME: "letters"}, owner="letters-node-0")
    async with serving(train_job("letters"), letters, own) as server:
        assert (await server.post(status(), status_path("team-a", "letters")))[0] == 403
        (asked,) = server.client.asked("TokenReview")
        assert asked == {"token": TOKEN, "audiences": [status_audience("team-a", "letters")]}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", PATH, id="get"),
        pytest.param("POST", PATH.replace("v1alpha1", "v2alpha1"), id="version"),
        pytest.param("POST", status_path("team-a/x", "digits"), id="more-parts"),
    ],
)
async def test_nothing_there(method: str, path: str) -> None:
    """There is one path and one method."""
    async with serving() as server:
        code, answer = await server.post(status(), path, method=method)
        assert (code, answer["reason"]) == (404, "NotFound")
        assert server.client.reviews == []


async def test_no_such_trainjob() -> None:
    """Its pod may go on for a while; names that do not exist are without number, and cost no review."""
    async with serving(jobset(), pod()) as server:
        for name in ("digits", "letters"):
            code, answer = await server.post(b"no JSON", status_path("team-a", name), **token(jti=name))
            assert (code, answer["message"]) == (404, f"there is no TrainJob team-a/{name}")
        assert server.client.reviews == []


@pytest.mark.parametrize(
    ("body", "headers", "code", "message"),
    [
        pytest.param(b"{", {}, 422, "must be one JSON object", id="no-json"),
        pytest.param(status(150), {}, 422, "trainerStatus.progressPercentage: Invalid value: 150", id="percentage"),
        pytest.param(b" " * 65_537, {}, 413, "the body has more than 65536 bytes", id="large"),
    ],
)
async def test_bad_bodies(
    body: Object | bytes | AsyncIterable[bytes], headers: dict[str, str], code: int, message: str
) -> None:
    """The answer is a Status that names the field, and nothing is written."""
    async with serving() as server:
        found, answer = await server.post(body, **headers)
        assert (found, answer["kind"]) == (code, "Status")
        assert answer["message"].startswith(message)
        assert server.writes == 0


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(statuses.bad_request("status.x: wrong"), 422, "status.x: wrong", id="refused"),
        pytest.param(statuses.internal_error(), 503, "the API server has not taken the progress", id="broken"),
    ],
)
async def test_failed_writes(error: KubeError, code: int, message: str) -> None:
    """The pod learns whether its report was wrong, or could not be written."""
    async with serving() as server:
        server.client.faults.fail(error, verb="apply")
        found, answer = await server.post(status())
        assert found == code
        assert message in answer["message"]


async def test_nobody_to_ask() -> None:
    """Without an answer of the API server nobody is let in."""
    async with serving() as server:
        server.client.failure = TransportError("down")
        assert (await server.post(status()))[0] == 503
        assert server.writes == 0


async def test_one_that_reports_all_the_time() -> None:
    """Ten at once and then one a second; another TrainJob is not affected."""
    letters = jobset() | {"metadata": jobset()["metadata"] | {"name": "letters"}}
    other = pod("letters-node-0-0-x", labels={JOBSET_NAME: "letters"}, owner="letters-node-0")
    users = {TOKEN: owner(), token_of("letters-node-0-0-x"): owner("letters-node-0-0-x")}
    async with serving(train_job(), train_job("letters"), jobset(), letters, pod(), other, users=users) as server:
        server.client.audiences.append(status_audience("team-a", "letters"))
        codes = [(await server.post(status()))[0] for _ in range(11)]
        assert codes == [200] * 10 + [429]
        answer = await server.post(status(), status_path("team-a", "letters"), **token("letters-node-0-0-x"))
        assert answer[0] == 200
        await server.clock.advance(1)
        assert [(await server.post(status()))[0] for _ in range(2)] == [200, 429]


async def test_limit_of_writes() -> None:
    """One more than allowed waits for four seconds at most."""
    async with serving(limit=(0.1, 1)) as server:
        assert (await server.post(status()))[0] == 200
        codes: list[int] = []

        async def post() -> None:
            codes.append((await server.post(status()))[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post)
            while not codes:
                await settle()
                await server.clock.advance(1)
        assert codes == [429]
        await server.clock.advance(10)
        assert (await server.post(status()))[0] == 200


async def test_namespaces_take_turns() -> None:
    """Many posts of one namespace hold up a later one of another namespace by one turn at most."""
    elsewhere = [
        obj | {"metadata": obj["metadata"] | {"namespace": "team-b"}} for obj in (train_job(), jobset(), pod())
    ]
    other = token_of(jti="b")
    users = {TOKEN: owner(), other: owner(account="system:serviceaccount:team-b:default")}
    async with serving(train_job(), jobset(), pod(), *elsewhere, users=users, limit=(1, 1)) as server:
        server.client.audiences.append(status_audience("team-b", "digits"))
        assert (await server.post(status()))[0] == 200
        answered: list[str] = []

        async def post(namespace: str, own: str) -> None:
            await server.post(status(), status_path(namespace, "digits"), Authorization=f"Bearer {own}")
            answered.append(namespace)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(post, "team-a", TOKEN)
            await settle()
            tasks.start_soon(post, "team-b", other)
            while len(answered) < 4:
                await settle()
                await server.clock.advance(0.25)
        assert "team-b" in answered[:2]


class Unknown(CaBundle):
    """Nobody knows by what clients recognise the server."""

    def set(self, pem: bytes) -> None:
        """There is no `ca.crt`."""


async def test_no_authority() -> None:
    """Pods could not verify the server, so the manager says what is missing."""
    source = GivenCertificates("127.0.0.1")
    source.ca = Unknown()
    clock = ManualClock()
    manager = Manager(Reviewer(resources=[TRAIN_JOBS, JOBSETS]), clock=clock)
    server = StatusServer(manager, source, StatusServerOptions(host="127.0.0.1", port=0))
    outcome: list[Exception] = []

    async def run() -> None:
        try:
            await server.run()
        except* ConfigurationError as group:
            outcome.extend(group.exceptions)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        while not outcome:
            await settle()
            await clock.advance(60)
    assert str(outcome[0]).endswith("there is no ca.crt beside tls.crt, by which clients could verify it")
