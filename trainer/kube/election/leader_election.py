"""Leader election: of several processes with the same lease, one at a time may write.

The candidate that finds the lease free, released or expired writes its identity into it, with optimistic locking, and
confirms it every retry period. Expiry is judged only by the local monotonic clock, from the moment at which a candidate
has last seen the record change: clocks of machines may differ, but they must run at about the same speed.

What keeps two from leading at once, from the first line of defence to the last:

1. A leader that could not renew for the renew deadline (10 s), or finds another holder in the lease, steps down: all
   its writes are broken off, further ones are refused, and the process is expected to exit.
2. Each write of the manager's client passes `writing`, which refuses it once the lease duration (15 s) has passed since
   the last successful renewal was *sent*, whatever this process was doing meanwhile. Others wait for the same time
   from the moment at which they *saw* that renewal, which is later.
3. A leader that stops releases the lease, so that the next one need not wait, but only if no write has been left
   without an answer; otherwise the lease is left to expire.

A process that is killed leaves the lease held. Others wait for the lease duration from their *own* first look, since
they trust no other clock, and one that is killed meanwhile starts to wait anew. Kills of leader and candidates at
intervals shorter than that would leave nobody leading for as long as they go on, as they do with client-go, where each
process has a random identity (controller-runtime, `pkg/leaderelection`). A container that is started again therefore
keeps its identity, see `default_identity`: it finds itself to be the holder and leads at once. Only where whole pods
are replaced faster than the lease expires does nobody lead.

A deleted lease counts as held until it would have expired; only a candidate that starts just then cannot know.

Facts and default times are those of client-go, with two differences. Its candidates pause 2 to 4.4 s between
attempts; ours 0.9 to 2 s, and never past the moment of expiry, so that a leader that was killed is replaced within
lease duration and retry period. And its leader goes on until the renew deadline although another holds the lease.
"""

from __future__ import annotations

import math
import socket
import uuid
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio

from trainer.kube.backoff import Backoff
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, move_on_after
from trainer.kube.election.lease import LeaseRecord, micro_time
from trainer.kube.election.write_fence import WriteFence
from trainer.kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    KubeError,
    LeadershipLostError,
    NotFoundError,
)
from trainer.kube.events.recorder import EventRecorder, EventSink
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.processes import ElectionMetrics
from trainer.kube.objects import Object
from trainer.kube.resource import LEASES

log = get_logger(__name__)

JITTER = 1.2
"""Spread of the pauses between attempts of a candidate (client-go's JitterFactor)."""

EVENT_REASON = "LeaderElection"
"""Reason of Normal events about the Lease: who has become leader, or has stopped leading."""


def default_identity(pod_uid: str = "", pid: int = 0) -> str:
    """Host name, which is the pod's name in a cluster, and a part that no other process has.

    That part is random, except for the first process of a pod's container: a kubelet starts the container again only
    when that process has ended, so its successor may have the same identity and go on with the lease at once.

    Args:
        pod_uid: `metadata.uid` of the pod in which this process runs. Default: it is not known.
        pid: of this process. Any but 1 may have been started in a container beside the first. Default: not known.
    """
    return f"{socket.gethostname()}_{pod_uid if pod_uid and pid == 1 else uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class LeaderElectionOptions:
    """The lease to compete for, and its times; all candidates should have the same."""

    name: str
    """Name of the Lease; label of the metrics."""
    namespace: str
    """Namespace of the Lease; `connect` tells that of the pod's service account as `client.namespace`."""
    identity: str = ""
    """Identity of this process, unique among all candidates. Default: `default_identity()`, new for each process."""
    lease_duration: int = 15
    """Whole seconds that other candidates wait before they acquire a lease that is not renewed. Default: 15, as in
    client-go."""
    renew_deadline: float = 10.0
    """Seconds without successful renewal after which the leader steps down. Default: 10, which leaves 5 s to end."""
    retry_period: float = 2.0
    """Seconds between renewals, and the longest pause between attempts of others. Default: 2, as in client-go."""

    def __post_init__(self) -> None:
        """Refuse times with which a leader could not renew in time.

        Raises:
            ValueError: names the field and the remedy.
        """
        if not self.name or not self.namespace:
            raise ValueError("leader election needs the name and the namespace of a lease")
        if self.lease_duration != int(self.lease_duration) or self.lease_duration < 1:
            raise ValueError(f"lease_duration must be a whole number of seconds from 1, got {self.lease_duration}")
        if not self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"renew_deadline ({self.renew_deadline} s) must be less than lease_duration ({self.lease_duration} s)"
            )
        if not 0 < self.retry_period * JITTER < self.renew_deadline:
            raise ValueError(
                f"retry_period ({self.retry_period} s) must be positive and less than "
                f"renew_deadline ({self.renew_deadline} s) divided by {JITTER}"
            )

    @property
    def request_timeout(self) -> float:
        """Seconds that one attempt may take, with all requests and their repetitions."""
        return max(1.0, self.renew_deadline / 2)


class LeaderElector:
    """Competes for a lease and, while it holds it, lets writes through.

    Args:
        client: for the lease; needs get, create and update. Not one whose writes depend on this elector.
        options: see its class.
        clock: default: that of the machine.
        metrics: default: none that anybody sees.
        events: takes the events about the lease; default: none are recorded.
    """

    def __init__(
        self,
        client: Client,
        options: LeaderElectionOptions,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        events: EventSink | None = None,
    ) -> None:
        self.identity = options.identity or default_identity()
        self._client = client
        self._options = options
        self._clock = clock or SystemClock()
        self._metrics = ElectionMetrics(metrics or Metrics(), options.name)
        self._recorder = None if events is None else EventRecorder(events, options.name)
        self._lease_name = f"{options.namespace}/{options.name}"
        self._fence = WriteFence(self._clock, f"this process does not hold the lease {self._lease_name}")
        # The longest of these pauses is the retry period.
        shortest = options.retry_period / (1 + JITTER)
        self._pause = Backoff(initial=shortest, maximum=shortest, jitter=JITTER)
        self._started = False
        self._elected = anyio.Event()
        self._leads = False
        self._lease: Object | None = None
        self._record: LeaseRecord | None = None
        self._record_seen = -math.inf
        self._renewed = -math.inf
        self._problem = "no answer"

    @property
    def is_leader(self) -> bool:
        """Whether this process holds the lease now."""
        return self._leads and self._fence.is_open

    @property
    def leader(self) -> str:
        """Identity of the last holder seen; empty when there is none."""
        return self._record.holder if self._record is not None else ""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Run one write under the lease; see `WriteFence.writing`."""
        return self._fence.writing()

    async def wait_for_leadership(self) -> None:
        """Wait until this process has become the leader."""
        await self._elected.wait()

    async def check(self) -> None:
        """Health check: a leader whose renewal is overdue must be restarted, whatever keeps it from stepping down.

        Raises:
            KubeError: says since when.
        """
        overdue = self._clock.monotonic() - self._renewed
        if self._leads and overdue > self._options.renew_deadline:
            raise KubeError(f"the lease {self._lease_name} has not been renewed for {overdue:.1f} s")

    async def run(self) -> None:
        """Compete for the lease, then renew it, until cancelled; a leader then releases it.

        Raises:
            LeadershipLostError: the lease could not be renewed in time, or somebody else has taken it.
            RuntimeError: it has been called before.
        """
        if self._started:
            raise RuntimeError(f"the election for {self._lease_name} has been started before")
        self._started = True
        log.info("waiting for leadership", lease=self._lease_name, identity=self.identity)
        lost: str | None = None
        try:
            while not await self._attempt():
                await self._clock.sleep(self._pause_of_candidate())
            self._start_leading()
            lost = await self._hold()
        finally:
            self._stop_leading()
            if lost is None:
                with anyio.CancelScope(shield=True):
                    await self._release()
        raise LeadershipLostError(f"leader election lost: {lost}")

    def _pause_of_candidate(self) -> float:
        pause = self._pause.pause(0)
        remaining = self._expiry() - self._clock.monotonic()
        return min(pause, remaining) if remaining > 0 else pause

    def _expiry(self) -> float:
        """When the record, as it was last seen, runs out."""
        if self._record is None or self._record.holder in {"", self.identity}:
            return -math.inf
        return self._record_seen + (self._record.duration_seconds or self._options.lease_duration)

    def _start_leading(self) -> None:
        self._leads = True
        self._elected.set()
        self._metrics.master_status.set(1)
        self._report("became leader")

    def _stop_leading(self) -> None:
        self._fence.close()
        if self._leads:
            self._leads = False
            self._metrics.master_status.set(0)
            self._report("stopped leading")

    def _report(self, what: str) -> None:
        log.info(what, lease=self._lease_name, identity=self.identity)
        if self._recorder is not None and self._lease is not None:
            lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **self._lease}
            message = f"{self.identity} {what}"
            self._recorder.record(lease, type="Normal", reason=EVENT_REASON, message=message)

    async def _hold(self) -> str:
        """Renew until that fails for too long, or the lease is somebody else's; returns how it was lost."""
        lost = ""

        async def watch_deadline() -> None:
            nonlocal lost
            while (remaining := self._renewed + self._options.renew_deadline - self._clock.monotonic()) > 0:
                await self._clock.sleep(remaining)
            # At once, since the attempt that is under way may take time to end.
            self._fence.close()
            problem = self._problem or "this process stood still"
            lost = f"{self._lease_name} was not renewed for {self._options.renew_deadline:g} s ({problem})"
            tasks.cancel_scope.cancel()

        async def renew() -> None:
            nonlocal lost
            while self.leader in {"", self.identity}:
                await self._clock.sleep(self._options.retry_period)
                await self._attempt()
            self._fence.close()
            lost = f"{self._lease_name} has been taken by {self.leader}"
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch_deadline)
            tasks.start_soon(renew)
        return lost

    async def _attempt(self) -> bool:
        """Acquire or renew; returns whether this process holds the lease. Failures are logged when they change."""
        problem, done = f"no answer within {self._options.request_timeout:g} s", False
        try:
            async with move_on_after(self._clock, self._options.request_timeout):
                done = await self._acquire_or_renew()
                problem = ""
        except ForbiddenError as error:
            problem = f"{error}; grant get, create and update on leases in namespace {self._options.namespace}"
        except KubeError as error:
            problem = str(error)
        if problem and problem != self._problem:
            log.warning("could not use the lease, will retry", lease=self._lease_name, error=problem)
        self._problem = problem
        return done

    async def _acquire_or_renew(self) -> bool:
        if self._leads and self._lease is not None:
            try:
                return await self._write(self._lease)
            except (ConflictError, NotFoundError):
                self._metrics.slow_path.inc()
        try:
            stored = await self._client.get(LEASES, self._options.name, self._options.namespace)
        except NotFoundError:
            return await self._create()
        self._see(stored)
        if self._clock.monotonic() < self._expiry() or (self._leads and self.leader not in {"", self.identity}):
            return False
        try:
            return await self._write(stored)
        except ConflictError:
            return False

    async def _write(self, lease: Object) -> bool:
        record = LeaseRecord.of(lease).held_by(self.identity, int(self._options.lease_duration), self._clock.now())
        sent = self._clock.monotonic()
        self._hold_from(sent, await self._client.update(LEASES, record.written_into(lease)))
        return True

    async def _create(self) -> bool:
        if self._clock.monotonic() < self._expiry():
            return False
        now = micro_time(self._clock.now())
        record = LeaseRecord(self.identity, int(self._options.lease_duration), acquired=now, renewed=now)
        metadata = {"name": self._options.name, "namespace": self._options.namespace}
        lease = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
        sent = self._clock.monotonic()
        try:
            self._hold_from(sent, await self._client.create(LEASES, record.written_into(lease)))
        except AlreadyExistsError:
            self._see(await self._client.get(LEASES, self._options.name, self._options.namespace))
            return False
        return True

    def _hold_from(self, sent: float, lease: Object) -> None:
        self._see(lease)
        self._renewed = sent
        self._fence.open_until(sent + self._options.lease_duration)

    def _see(self, lease: Object) -> None:
        """Take note of what the server has stored."""
        self._lease = lease
        record = LeaseRecord.of(lease)
        if record == self._record:
            return
        if record.holder not in {"", self.identity, self.leader}:
            log.info("found leader", lease=self._lease_name, leader=record.holder)
        self._record, self._record_seen = record, self._clock.monotonic()

    async def _release(self) -> None:
        """Let others take over at once, unless they have already."""
        if self.leader != self.identity:
            return
        if not self._fence.is_quiet_since(self._clock.monotonic() - self._options.lease_duration):
            log.info("leaving the lease to expire, since writes were broken off", lease=self._lease_name)
            return
        problem = f"no answer within {self._options.request_timeout:g} s"
        try:
            async with move_on_after(self._clock, self._options.request_timeout):
                while self._lease is not None and LeaseRecord.of(self._lease).holder == self.identity:
                    record = LeaseRecord.of(self._lease).released(self._clock.now())
                    try:
                        await self._client.update(LEASES, record.written_into(self._lease))
                    except ConflictError:
                        self._lease = await self._client.get(LEASES, self._options.name, self._options.namespace)
                        continue
                    log.info("released lease", lease=self._lease_name)
                    return
                return
        except KubeError as error:
            problem = str(error)
        log.warning("could not release the lease, it will expire", lease=self._lease_name, error=problem)
