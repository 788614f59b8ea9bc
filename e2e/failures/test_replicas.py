"""A replica that dies, is upgraded or has a wrong clock: the other goes on, and nothing happens twice."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.identity import NAMESPACE
from e2e.leftovers import identities, repeated_events
from e2e.replicas import BRIEF, LEASE, Replicas, fake_job
from e2e.submission import submit, submitting
from e2e.waiting import until
from trainer.kube.clock import parse_timestamp

pytestmark = pytest.mark.timeout(300)
TAKE_OVER_SECONDS = 20
HAND_OVER_SECONDS = 10
"""Less than it takes until a lease expires that nobody has released."""
SKEW = 300


def test_leader_killed(replicas: Replicas) -> None:
    """The other writes within 20 s after SIGKILL; what runs is left alone, what is submitted meanwhile is trained."""
    cluster, leader, standby = replicas.cluster, replicas.leader, replicas.standby
    long = submit(cluster, [fake_job(f"long-{number}") for number in range(5)]).accepted
    replicas.wait_for_state("Running", long)
    running = identities(cluster)
    with submitting(cluster, lambda number: fake_job(f"brief-{number}", BRIEF), pause=0.5) as brief:
        brief.wait_for_more(3)
        killed = leader.kill()
        known = set(identities(cluster, "jobsets"))
        until(lambda: set(identities(cluster, "jobsets")) - known, "a JobSet is created")
        assert time.monotonic() - killed < TAKE_OVER_SECONDS
    assert not brief.refused
    assert replicas.leader is standby
    replicas.wait_for_state("Complete", brief.accepted)
    assert running.items() <= identities(cluster).items()
    # The audit log does not tell what came of the request that the dead leader did not wait for.
    assert set(replicas.creations().values()) == {1}
    assert set(identities(cluster, "jobsets")) == {f"JobSet {name}" for name in [*long, *brief.accepted]}
    replicas.finish_pods()
    replicas.wait_for_state("Complete", long)
    assert not repeated_events(cluster)


def test_manager_upgraded(replicas: Replicas) -> None:
    """A later build takes over within seconds after SIGTERM and does not touch what the earlier one has started."""
    cluster, old_standby, old_leader = replicas.cluster, replicas.standby, replicas.leader
    long = submit(cluster, [fake_job(f"long-{number}") for number in range(5)]).accepted
    queued = submit(cluster, [fake_job("queued", suspend=True)]).accepted
    replicas.wait_for_state("Running", long)
    replicas.wait_for_state("Suspended", queued)
    running = identities(cluster)
    # What has not started yet may still get the labels that it has by now.
    identity, _ = running.pop("JobSet queued")
    with submitting(cluster, lambda number: fake_job(f"brief-{number}", BRIEF), pause=0.5) as brief:
        replicas.stop(old_standby)
        old_standby.start("--build", "later")
        reported = replicas.stop(old_leader)
        assert replicas.leader is old_standby
        assert time.monotonic() - reported < HAND_OVER_SECONDS
        assert "released lease" in old_leader.process.output()
        old_leader.start("--build", "later")
        first_of_new = len(brief.accepted)
        until(lambda: len(brief.accepted) > first_of_new + 1, "jobs are being created")
    assert not brief.refused
    replicas.wait_for_state("Complete", brief.accepted)
    assert running.items() <= identities(cluster).items()
    assert identities(cluster)["JobSet queued"][0] == identity
    assert replicas.creations().items() >= dict.fromkeys([*long, *brief.accepted], 1).items()
    later = {obj["metadata"]["name"] for obj in cluster.list("jobsets") if "build" in obj["metadata"].get("labels", {})}
    assert brief.accepted[-1] in later
    assert not later & set(long)
    cluster.kubectl("patch", "trainjob", "queued", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    replicas.wait_for_state("Running", queued)
    replicas.finish_pods()
    replicas.wait_for_state("Complete", [*long, *queued])
    for replica in (old_leader, old_standby):
        replicas.stop(replica)
        replica.start()


def test_clocks_differ(replicas: Replicas) -> None:
    """Replicas whose clocks are ten minutes apart lead one after the other; nothing ends before its time by either."""
    cluster, slow, fast = replicas.cluster, replicas.standby, replicas.leader
    replicas.stop(slow)
    slow.start("--clock-offset", str(-SKEW))
    replicas.stop(fast)
    assert replicas.leader is slow
    fast.start("--clock-offset", str(SKEW))
    began = datetime.now(UTC)
    jobs = [
        fake_job("long", activeDeadlineSeconds=2 * SKEW),
        fake_job("kept", BRIEF, ttlSecondsAfterFinished=3 * SKEW),
        fake_job("late", activeDeadlineSeconds=1),
    ]
    submit(cluster, jobs)
    replicas.wait_for_state("Running", ["long", "late"])
    replicas.wait_for_state("Complete", ["kept"])
    renewals(cluster, 2)
    assert replicas.leader is slow, "a lease that looks old is not expired"

    replicas.stop(slow)
    assert replicas.leader is fast
    slow.start("--clock-offset", str(-SKEW))
    replicas.wait_for_state("Failed", ["late"])
    submit(cluster, [fake_job("brief", BRIEF)])
    replicas.wait_for_state("Complete", ["brief"])
    renewals(cluster, 2)
    assert replicas.leader is fast
    assert cluster.state("long") == "Running", "its deadline has not come by either clock"
    assert cluster.state("kept") == "Complete", "its time to live is not over by either clock"
    for job in cluster.list("trainjobs"):
        for condition in job["status"]["conditions"]:
            reported = parse_timestamp(condition["lastTransitionTime"])
            assert began - timedelta(seconds=SKEW + 60) < reported < datetime.now(UTC) + timedelta(seconds=SKEW + 60)
    shown = cluster.trainer("get", "brief")
    assert shown.returncode == 0, shown.stderr
    replicas.finish_pods()
    replicas.wait_for_state("Complete", ["long"])
    assert replicas.creations() == dict.fromkeys(["long", "kept", "late", "brief"], 1)
    for replica in (slow, fast):
        replicas.stop(replica)
        replica.start()


def renewals(cluster: Cluster, count: int) -> None:
    """Wait until the lease has been renewed so often, which gives candidates the time to look at it."""
    for _ in range(count):
        wait_for_renewal(cluster, lease(cluster)["renewTime"])


def wait_for_renewal(cluster: Cluster, known: str) -> None:
    until(lambda: lease(cluster)["renewTime"] != known, "the lease is renewed")


def lease(cluster: Cluster) -> dict[str, Any]:
    found = cluster.kubectl("get", "lease", LEASE, "-n", NAMESPACE, "-o", "json").stdout
    spec: dict[str, Any] = json.loads(found)["spec"]
    return spec
