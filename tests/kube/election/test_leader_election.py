"""Leader election: never two leaders, always one soon, and no write by any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from trainer.kube.client import Client
from trainer.kube.election.leader_election import LeaderElectionOptions, LeaderElector, default_identity
from trainer.kube.election.lease import LeaseRecord
from trainer.kube.errors import (
    ConflictError,
    ForbiddenError,
    InternalError,
    KubeError,
    LeadershipLostError,
    ServerTimeoutError,
    TransportError,
)
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, LEASES, Resource
from trainer_kube_testing import FakeClient, ManualClock, settle
from trainer_kube_testing.recorded import RecordedEvents

DURATION, DEADLINE, RETRY = 15, 10.0, 2.0


class Link:
    """One process's way to the server: it can be cut, and requests and answers can get stuck on it."""

    def __init__(self, server: FakeClient) -> None:
        self.server = server
        self.requests: list[str] = []
        self.error: KubeError | None = None
        self.is_stuck = False
        self.answers_are_stuck = False

    async def get(self, resource: Resource, name: str, namespace: str) -> Object:
        return await self._pass("get", lambda: self.server.get(resource, name, namespace))

    async def create(self, resource: Resource, obj: Object) -> Object:
        return await self._pass("create", lambda: self.server.create(resource, obj))

    async def update(self, resource: Resource, obj: Object) -> Object:
        return await self._pass("update", lambda: self.server.update(resource, obj))

    async def _pass(self, verb: str, send: Callable[[], Any]) -> Object:
        self.requests.append(verb)
        if self.error is not None:
            raise self.error
        if self.is_stuck:
            await anyio.sleep_forever()
        answer = await send()
        if self.answers_are_stuck:
            await anyio.sleep_forever()
        return cast("Object", answer)


class Candidate:
    """An elector in a process of its own."""

    def __init__(self, name: str, server: FakeClient, clock: ManualClock, **options: Any) -> None:
        self.link = Link(server)
        self.metrics = Metrics()
        self.events = RecordedEvents()
        self.elector = LeaderElector(
            cast("Client", self.link),
            LeaderElectionOptions("lease", "ns", identity=name, **options),
            clock=clock,
            metrics=self.metrics,
            events=self.events,
        )
        self.lost: LeadershipLostError | None = None

    async def run(self) -> None:
        try:
            await self.elector.run()
        except LeadershipLostError as error:
            self.lost = error

    def leads(self) -> bool:
        return self.elector.is_leader

    def status(self) -> float | None:
        return self.metrics.registry.get_sample_value("leader_election_master_status", {"name": "lease"})


@pytest.fixture
def server(clock: ManualClock) -> FakeClient:
    return FakeClient(clock=clock)


@pytest.fixture
def a(server: FakeClient, clock: ManualClock) -> Candidate:
    return Candidate("a", server, clock)


@pytest.fixture
def b(server: FakeClient, clock: ManualClock) -> Candidate:
    return Candidate("b", server, clock)


def stored(server: FakeClient) -> Object:
    [found] = server.objects(LEASES)
    return found


def lease(spec: Any, **metadata: Any) -> Object:
    named = {"name": "lease", "namespace": "ns"} | metadata
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": named, "spec": spec}


async def pass_time(clock: ManualClock, seconds: float, *candidates: Candidate) -> None:
    """Let time pass in small steps, in each of which at most one candidate may lead."""
    for _ in range(round(seconds / 0.25)):
        await clock.advance(0.25)
        assert sum(candidate.leads() for candidate in candidates) <= 1


async def test_first_candidate_creates_the_lease(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """The record has the fields, and the timestamps in UTC with microseconds, that client-go writes."""
    background(a.run())
    assert a.status() == 0
    await a.elector.wait_for_leadership()
    assert a.leads()
    assert a.status() == 1
    assert stored(server)["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await clock.advance(2.5)
    assert stored(server)["spec"]["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert stored(server)["spec"]["renewTime"] == "2026-01-01T00:00:02.000000Z"


async def test_renewal_is_one_request(a: Candidate, clock: ManualClock, background: Background) -> None:
    """A leader updates what it has written last, without reading it."""
    background(a.run())
    await clock.advance(10)
    assert a.link.requests == ["get", "create"] + 5 * ["update"]


async def test_others_leave_a_renewed_lease_alone(
    server: FakeClient, a: Candidate, b: Candidate, clock: ManualClock, background: Background
) -> None:
    """As long as the leader renews, there is no other, and what others have put into the Lease stays."""
    server.add(lease({"strategy": "OldestEmulationVersion"}, labels={"who": "knows"}))
    background(a.run())
    await settle()
    background(b.run())
    await pass_time(clock, 60, a, b)
    assert a.leads()
    assert b.elector.leader == "a"
    assert set(b.link.requests) == {"get"}
    assert stored(server)["metadata"]["labels"] == {"who": "knows"}
    assert stored(server)["spec"]["strategy"] == "OldestEmulationVersion"


async def test_candidates_do_not_trust_timestamps(
    server: FakeClient, b: Candidate, clock: ManualClock, background: Background
) -> None:
    """A lease whose times look ancient, or far ahead, is taken once it was not seen to change for its duration."""
    for times in ("1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"):
        spec = {"holderIdentity": "x", "leaseDurationSeconds": 30, "renewTime": times, "leaseTransitions": 4}
        server.add(lease(spec))
        candidate = Candidate("b", server, clock)
        task = background(candidate.run())
        await clock.advance(29.9)
        assert not candidate.leads()
        await clock.advance(0.2)
        assert candidate.leads()
        assert stored(server)["spec"]["leaseTransitions"] == 5
        task.cancel()
        await settle()


async def test_killed_leader_is_replaced_in_time(
    server: FakeClient, clock: ManualClock, background: Background
) -> None:
    """After SIGKILL of the leader another leads within lease duration + retry period, whenever it happens."""
    for kill_after in (0.0, 1.0, 1.9, 2.0, 3.3):
        a, b = Candidate("a", server, clock), Candidate("b", server, clock)
        background(a.run())
        await a.elector.wait_for_leadership()
        running = background(b.run())
        await pass_time(clock, 8, a, b)
        await clock.advance(kill_after)
        a.link.is_stuck = True
        await pass_time(clock, DURATION + RETRY, a, b)
        assert b.leads(), kill_after
        running.cancel()
        await settle()


@pytest.mark.parametrize(
    ("interval", "keeps_identity", "longest"),
    [
        pytest.param(3.0, True, 0.25, id="containers are started again"),
        pytest.param(7.0, True, 0.25, id="containers are started again, less often"),
        pytest.param(20.0, False, DURATION + RETRY, id="pods are replaced, and one lives long enough"),
    ],
)
async def test_kills_of_everybody(
    server: FakeClient,
    clock: ManualClock,
    background: Background,
    interval: float,
    keeps_identity: bool,
    longest: float,
) -> None:
    """Leader and candidate are killed again and again, together: nobody leads only for as long as the lease is held.

    Kills at intervals below the lease duration leave nobody with the time to wait for a lease of somebody else.
    """
    names = iter(range(1000))
    leaderless = gap = 0.0
    for _ in range(round(120 / interval)):
        pair = [Candidate(name if keeps_identity else f"{name}-{next(names)}", server, clock) for name in ("a", "b")]
        for candidate in pair:
            background(candidate.run())
            await settle()
        for _ in range(round(interval / 0.25)):
            gap = 0.0 if any(candidate.leads() for candidate in pair) else gap + 0.25
            leaderless = max(leaderless, gap)
            await pass_time(clock, 0.25, *pair)
        for candidate in pair:
            candidate.link.is_stuck = True
    # What has been killed does not release the lease.
    await clock.advance(DURATION)
    assert leaderless <= longest


@pytest.mark.parametrize(
    ("pod_uid", "pid", "is_kept"),
    [
        pytest.param("uid", 1, True, id="the first process of a container"),
        pytest.param("uid", 7, False, id="another process in the container"),
        pytest.param("", 1, False, id="no pod"),
    ],
)
def test_identity(pod_uid: str, pid: int, is_kept: bool) -> None:
    """A container that is started again has the identity that it had, and nobody else has it."""
    assert (default_identity(pod_uid, pid) == default_identity(pod_uid, pid)) is is_kept
    assert default_identity(pod_uid, pid) != default_identity("other", pid)


async def test_release_lets_the_next_one_lead_at_once(
    server: FakeClient, a: Candidate, b: Candidate, clock: ManualClock, background: Background
) -> None:
    """A leader that is stopped empties the lease, and a candidate takes it at its next attempt."""
    running = background(a.run())
    await a.elector.wait_for_leadership()
    background(b.run())
    await pass_time(clock, 5, a, b)
    running.cancel()
    await settle()
    assert LeaseRecord.of(stored(server)).holder == ""
    assert stored(server)["spec"]["leaseDurationSeconds"] == 1
    assert a.status() == 0
    await pass_time(clock, RETRY, a, b)
    assert b.leads()
    assert stored(server)["spec"]["leaseTransitions"] == 1
    assert stored(server)["spec"]["leaseDurationSeconds"] == 15


async def test_release_survives_a_conflict(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """A Lease that somebody has labelled meanwhile is released all the same."""
    running = background(a.run())
    await a.elector.wait_for_leadership()
    server.add(lease(stored(server)["spec"], labels={"a": "b"}))
    running.cancel()
    await settle()
    assert LeaseRecord.of(stored(server)).holder == ""
    assert stored(server)["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("error", "is_released"),
    [
        pytest.param(TransportError("connection reset"), False, id="no-answer"),
        pytest.param(ServerTimeoutError(504, "the request timed out"), False, id="timeout"),
        pytest.param(InternalError(500, "etcdserver: request timed out"), False, id="internal"),
        pytest.param(ConflictError(409, "modified"), True, id="conflict"),
    ],
)
async def test_lease_is_kept_after_a_write_of_unknown_outcome(
    server: FakeClient, a: Candidate, background: Background, error: KubeError, is_released: bool
) -> None:
    """Nobody else may write while the server may still carry out a write, as it may not after a refusal."""
    running = background(a.run())
    await a.elector.wait_for_leadership()
    with pytest.raises(type(error)):
        async with a.elector.writing():
            raise error
    running.cancel()
    await settle()
    assert LeaseRecord.of(stored(server)).holder == ("" if is_released else "a")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="empty"),
        pytest.param("free", id="text"),
        pytest.param({"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None}, id="nulls"),
        pytest.param({"holderIdentity": ["x"], "leaseDurationSeconds": "15", "leaseTransitions": "1"}, id="types"),
        pytest.param({"holderIdentity": "x", "leaseDurationSeconds": "15", "leaseTransitions": "1"}, id="held"),
        pytest.param({"holderIdentity": "x", "leaseDurationSeconds": -1}, id="negative"),
        pytest.param({"holderIdentity": "x", "acquireTime": 7, "renewTime": {}}, id="times"),
    ],
)
async def test_damaged_lease_is_repaired(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background, spec: Any
) -> None:
    """What is no record counts as absent: a holder keeps the lease for the usual time, then it is written anew."""
    server.add(lease(spec))
    held = LeaseRecord.of(stored(server)).holder == "x"
    background(a.run())
    await clock.advance(DURATION - 0.5)
    assert a.leads() is not held
    await clock.advance(1)
    assert a.leads()
    assert stored(server)["spec"]["holderIdentity"] == "a"
    assert stored(server)["spec"]["leaseDurationSeconds"] == DURATION


async def test_release_without_answer_is_reported(a: Candidate, clock: ManualClock, background: Background) -> None:
    """The log says why the next leader has to wait."""
    running = background(a.run())
    await a.elector.wait_for_leadership()
    a.link.is_stuck = True
    with capture_logs() as logs:
        running.cancel()
        await clock.advance(5)
    [warning] = [entry for entry in logs if entry["log_level"] == "warning"]
    assert warning["event"] == "could not release the lease, it will expire"
    assert warning["error"] == "no answer within 5 s"


async def test_stop_of_a_candidate_leaves_the_lease_alone(
    server: FakeClient, a: Candidate, b: Candidate, clock: ManualClock, background: Background
) -> None:
    """Only the holder releases."""
    background(a.run())
    await a.elector.wait_for_leadership()
    running = background(b.run())
    await settle()
    running.cancel()
    await settle()
    assert LeaseRecord.of(stored(server)).holder == "a"
    assert set(b.link.requests) == {"get"}


@pytest.mark.parametrize("fault", ["refused", "stuck", "answers-stuck", "forbidden"])
async def test_leader_steps_down_before_its_lease_expires(
    server: FakeClient, a: Candidate, b: Candidate, clock: ManualClock, background: Background, fault: str
) -> None:
    """Without a renewal for the renew deadline the leader gives up; its election ends with the reason."""
    background(a.run())
    await a.elector.wait_for_leadership()
    background(b.run())
    await pass_time(clock, 4, a, b)
    if fault == "refused":
        a.link.error = TransportError("connection refused")
    elif fault == "forbidden":
        a.link.error = ForbiddenError(403, "leases is forbidden")
    else:
        a.link.is_stuck = fault == "stuck"
        a.link.answers_are_stuck = fault == "answers-stuck"
    await pass_time(clock, DEADLINE - 0.25, a, b)
    assert a.leads()
    await pass_time(clock, 0.25, a, b)
    assert not a.leads()
    assert a.status() == 0
    assert a.lost is not None
    assert str(a.lost).startswith("leader election lost: ns/lease was not renewed for 10 s (")
    if a.link.error is not None:
        assert str(a.link.error) in str(a.lost)
    await pass_time(clock, DURATION + DEADLINE, a, b)
    assert b.leads()


async def test_time_counts_from_the_request(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have seen the record as soon as it was sent, however late the answer arrives here."""

    async def create_slowly(resource: Resource, obj: Object) -> Object:
        answer = await server.create(resource, obj)
        await clock.sleep(4)
        return answer

    monkeypatch.setattr(a.link, "create", create_slowly)
    background(a.run())
    await clock.advance(4)
    a.link.is_stuck = True
    await clock.advance(DEADLINE - 4.1)
    assert a.leads()
    await clock.advance(0.2)
    assert not a.leads()


async def test_short_outage_is_survived(a: Candidate, clock: ManualClock, background: Background) -> None:
    """A leader that can renew again before the renew deadline stays the leader."""
    background(a.run())
    await clock.advance(4)
    a.link.is_stuck = True
    await clock.advance(7)
    a.link.is_stuck = False
    await clock.advance(20)
    assert a.leads()
    assert a.lost is None


async def test_answer_that_got_lost(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """A renewal that was carried out but not answered is no obstacle to the next one."""
    background(a.run())
    await clock.advance(3)
    a.link.answers_are_stuck = True
    await clock.advance(2)
    a.link.answers_are_stuck = False
    await clock.advance(20)
    assert a.leads()
    assert a.metrics.registry.get_sample_value("leader_election_slowpath_total", {"name": "lease"}) == 1


async def test_conflict_with_a_bystander(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """Somebody who only labels the Lease does not end the leadership."""
    background(a.run())
    await clock.advance(3)
    server.add(lease(stored(server)["spec"], labels={"a": "b"}))
    await clock.advance(4)
    assert a.leads()
    assert a.link.requests[-3:] == ["get", "update", "update"]


async def test_leader_that_finds_another_holder_stops_at_once(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """It does not go on until the renew deadline, and takes nothing back."""
    background(a.run())
    await clock.advance(3)
    server.add(lease(stored(server)["spec"] | {"holderIdentity": "usurper"}))
    await clock.advance(1)
    assert str(a.lost) == "leader election lost: ns/lease has been taken by usurper"
    assert not a.leads()
    assert LeaseRecord.of(stored(server)).holder == "usurper"


async def test_deleted_lease_is_the_leaders(
    server: FakeClient, a: Candidate, b: Candidate, clock: ManualClock, background: Background
) -> None:
    """The leader writes it anew; a candidate waits until what it has seen would have expired."""
    background(a.run())
    await a.elector.wait_for_leadership()
    background(b.run())
    await pass_time(clock, 4, a, b)
    await server.delete(LEASES, "lease", "ns")
    await pass_time(clock, 30, a, b)
    assert a.leads()
    a.link.is_stuck = True
    await server.delete(LEASES, "lease", "ns")
    await pass_time(clock, DURATION + RETRY, a, b)
    assert b.leads()
    assert a.lost is not None


async def test_simultaneous_candidates(server: FakeClient, clock: ManualClock, background: Background) -> None:
    """Of many that find the lease free in the same moment, one becomes the leader, and one again when it is killed."""
    candidates = [Candidate(str(number), server, clock) for number in range(5)]
    for candidate in candidates:
        background(candidate.run())
    await pass_time(clock, 10, *candidates)
    [leader] = [candidate for candidate in candidates if candidate.leads()]
    leader.link.is_stuck = True
    await pass_time(clock, DURATION + RETRY, *candidates)
    assert sum(candidate.leads() for candidate in candidates) == 1
    assert not leader.leads()


async def test_taking_over_can_be_lost_to_another(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """A conflict when the lease was free is no error, only one more wait."""
    server.add(lease({"holderIdentity": ""}))
    server.faults.fail(ConflictError(409, "modified"), verb="update")
    background(a.run())
    await settle()
    assert not a.leads()
    await clock.advance(RETRY)
    assert a.leads()


async def test_a_process_that_slept_does_not_write(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """After a jump of the time the fence is closed before any timer has fired, and opens only with the lease."""
    background(a.run())
    await a.elector.wait_for_leadership()
    async with a.elector.writing():
        pass
    clock._elapsed += DURATION
    assert not a.leads()
    with pytest.raises(LeadershipLostError, match="does not hold the lease ns/lease"):
        async with a.elector.writing():
            raise AssertionError("let through")
    await clock.advance(0)
    reason = "ns/lease was not renewed for 10 s (this process stood still)"
    assert str(a.lost) == f"leader election lost: {reason}"


async def test_write_under_way_is_broken_off(
    server: FakeClient, a: Candidate, clock: ManualClock, background: Background
) -> None:
    """A request that hangs when the leader steps down is cancelled, and its caller gets the reason."""
    outcome: list[Exception] = []

    async def write() -> None:
        try:
            async with a.elector.writing():
                await anyio.sleep_forever()
        except LeadershipLostError as error:
            outcome.append(error)

    background(a.run())
    await a.elector.wait_for_leadership()
    background(write())
    await clock.advance(1)
    a.link.is_stuck = True
    await clock.advance(DEADLINE - 1.5)
    assert outcome == []
    await clock.advance(1)
    assert [str(error) for error in outcome] == ["write broken off: this process does not hold the lease ns/lease"]


async def test_writes_before_and_after_leadership_are_refused(
    server: FakeClient, a: Candidate, background: Background
) -> None:
    """The fence is closed until the lease is held, and for good once it was given up."""

    async def write() -> None:
        async with a.elector.writing():
            await server.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "ns"}})

    with pytest.raises(LeadershipLostError):
        await write()
    running = background(a.run())
    await a.elector.wait_for_leadership()
    await write()
    running.cancel()
    await settle()
    with pytest.raises(LeadershipLostError):
        await write()
    assert len(server.requests_of("create")) == 2


async def test_cancelled_write_stays_cancelled(a: Candidate, background: Background) -> None:
    """The fence does not turn a cancellation by others into an error."""
    background(a.run())
    await a.elector.wait_for_leadership()

    async def write() -> None:
        async with a.elector.writing():
            await anyio.sleep_forever()

    writing = asyncio.create_task(write())
    await settle()
    writing.cancel()
    await asyncio.wait([writing])
    assert writing.cancelled()


async def test_events(a: Candidate, clock: ManualClock, background: Background) -> None:
    """Events about the Lease say who became and who stopped being the leader."""
    running = background(a.run())
    await a.elector.wait_for_leadership()
    running.cancel()
    await settle()
    reported = [
        (occurrence.reason, occurrence.regarding.kind, occurrence.message) for occurrence in a.events.occurrences
    ]
    assert reported == [
        ("LeaderElection", "Lease", "a became leader"),
        ("LeaderElection", "Lease", "a stopped leading"),
    ]


async def test_health_check(a: Candidate, clock: ManualClock, background: Background) -> None:
    """It fails for a leader that is overdue, and only for one."""
    await a.elector.check()
    background(a.run())
    await a.elector.wait_for_leadership()
    clock._elapsed += DEADLINE
    await a.elector.check()
    clock._elapsed += 1
    with pytest.raises(KubeError, match=r"the lease ns/lease has not been renewed for 11\.0 s"):
        await a.elector.check()


async def test_forbidden_lease_is_reported_once_with_the_remedy(
    a: Candidate, clock: ManualClock, background: Background
) -> None:
    """A candidate goes on trying, since the permission may still be given."""
    a.link.error = ForbiddenError(403, 'leases "lease" is forbidden')
    with capture_logs() as logs:
        background(a.run())
        await clock.advance(20)
        a.link.error = None
        await clock.advance(2)
    warnings = [entry["error"] for entry in logs if entry["log_level"] == "warning"]
    assert warnings == ['leases "lease" is forbidden; grant get, create and update on leases in namespace ns']
    assert a.leads()


async def test_elector_runs_once(a: Candidate, background: Background) -> None:
    """A lost election is not repeated in the same process."""
    background(a.run())
    await settle()
    with pytest.raises(RuntimeError, match="started before"):
        await a.elector.run()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"lease_duration": 0}, "lease_duration must be a whole number", id="no-duration"),
        pytest.param({"lease_duration": 1.5}, "lease_duration must be a whole number", id="fraction"),
        pytest.param({"renew_deadline": 15}, "must be less than lease_duration", id="deadline"),
        pytest.param({"retry_period": 9}, "less than renew_deadline", id="retry"),
        pytest.param({"retry_period": 0}, "must be positive", id="no-retry"),
        pytest.param({"namespace": ""}, "the name and the namespace", id="namespace"),
    ],
)
def test_impossible_times_are_refused(options: dict[str, Any], message: str) -> None:
    """A leader must have time to renew."""
    with pytest.raises(ValueError, match=message):
        LeaderElectionOptions(**{"name": "lease", "namespace": "ns", **options})


def test_identities_differ(server: FakeClient) -> None:
    """Each elector has its own, which begins with the host name."""
    options = LeaderElectionOptions("lease", "ns")
    first, second = (LeaderElector(server, options).identity for _ in range(2))
    assert first != second
    assert first.rpartition("_")[0] == second.rpartition("_")[0]
