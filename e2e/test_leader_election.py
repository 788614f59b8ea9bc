"""Two processes and one lease: the survivor takes over in time, and never do both write."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import Cluster, train_job
from e2e.election_writer import LEASE_DURATION, RETRY_PERIOD
from e2e.identity import NAMESPACE
from e2e.manager import manager, other_ports
from e2e.processes import Process

PROGRAM = Path(__file__).with_name("election_writer.py")


class Writer:
    """One of the competing processes."""

    def __init__(self, cluster: Cluster, name: str, directory: Path) -> None:
        self.cluster, self.name = cluster, name
        command = [sys.executable, str(PROGRAM), str(cluster.kubeconfig), cluster.namespace, name]
        self.process = Process(command, directory / f"{name}.log")

    def versions(self) -> list[int]:
        """Resource versions of all its writes, also of one that it could not tell of any more."""
        reported = [int(version) for version in re.findall(r"^wrote (\d+)$", self.process.output(), re.MULTILINE)]
        stored = self.cluster.get("configmap", self.name)
        return reported if stored is None else [*reported, int(stored["metadata"]["resourceVersion"])]

    def wait_for_writes(self, count: int) -> None:
        """Wait until it has written so often, and now pauses before its next write."""
        self.process.wait_for_output("wrote ")
        known = self.process.output().count("wrote ")
        while self.process.output().count("wrote ") < known + count:
            time.sleep(0.002)


def test_frozen_leader_does_not_write_when_it_thaws(cluster: Cluster, tmp_path: Path) -> None:
    """A process that did not run while its lease expired is refused by its own fence, and ends with the reason."""
    first, second = (Writer(cluster, name, tmp_path) for name in ("first", "second"))
    try:
        first.process.start(ready="wrote ")
        second.process.start(ready="found leader")
        first.wait_for_writes(3)
        first.process.send(signal.SIGSTOP)
        try:
            second.process.wait_for_output("wrote ")
            second.wait_for_writes(3)
        finally:
            first.process.send(signal.SIGCONT)
        assert first.process.wait() == 1
        assert "LeadershipLostError" in first.process.output()
        second.wait_for_writes(3)
        assert max(first.versions()) < min(second.versions())
    finally:
        for writer in (first, second):
            writer.process.stop()


@contextmanager
def managers(cluster: Cluster, directory: Path) -> Iterator[tuple[Process, Process]]:
    """Two controller managers for the namespace of the test, of which the first leads."""
    changes = {
        "controller": {"namespace": cluster.namespace},
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": f"{LEASE_DURATION}s",
            "renewDeadline": "2s",
            "retryPeriod": f"{RETRY_PERIOD}s",
        },
    }
    first = manager(cluster, directory, "first", **changes, **other_ports())
    # The API server asks the webhooks of this one, as those of a Service whose other pod is gone.
    second = manager(cluster, directory, "second", **changes)
    try:
        first.start(ready="started controller")
        second.start(ready="found leader")
        yield first, second
    finally:
        first.stop()
        second.stop()


def test_second_manager_takes_over(session_cluster: Cluster, cluster: Cluster, tmp_path: Path) -> None:
    """A TrainJob that is submitted while the leader dies is trained by the other, which was ready before it led.

    When that one loses the lease it says so in one line and ends with an error, for its pod to be restarted.
    """
    session_cluster.manager.send(signal.SIGTERM)
    assert session_cluster.manager.wait() == 0
    try:
        with managers(cluster, tmp_path) as (first, second):
            assert "started manager" in second.output()
            assert "started controller" not in second.output()
            first.send(signal.SIGKILL)
            cluster.apply(train_job("job", "print('trained')"))
            cluster.wait_for_state("job", "Complete")
            assert "became leader" in second.output()
            theft = '{"spec": {"holderIdentity": "thief"}}'
            cluster.kubectl("patch", "lease", "trainer.kubeflow.org", "-n", NAMESPACE, "--type=merge", "-p", theft)
            assert second.wait() == 1
            line = f"error: leader election lost: {NAMESPACE}/trainer.kubeflow.org has been taken by thief"
            # Not always the last line: log events are written by a thread.
            assert line in second.output().splitlines()
    finally:
        cluster.kubectl("delete", "lease", "trainer.kubeflow.org", "-n", NAMESPACE)
        session_cluster.manager.start(ready="started manager")
