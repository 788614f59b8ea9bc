"""Two replicas of the manager as config/ installs them, with a dev cluster of their own that may be killed, too.

They are configured by the file that the Deployment mounts, except for addresses: both listen on ports of this machine,
and a balancer stands where the Service of the webhooks would be. Pods are fake: they run until a test ends them.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from e2e import audit
from e2e.balancer import Balancer, balanced
from e2e.cluster import Cluster, training_runtime
from e2e.identity import NAMESPACE, write_credentials
from e2e.installation import CONFIG, HOST, free_ports, roles, shipped_configuration, wait_for_trust, webhooks
from e2e.kubectl import BIN
from e2e.manager import Manager, manager
from e2e.processes import Process
from e2e.waiting import until

ALTERED = Path(__file__).with_name("altered_manager.py")
LEASE = "trainer.kubeflow.org"
RUNS_FOR = "devcluster.trainer/runs-for"
BRIEF, LONG = "brief", "long"
"""Runtimes whose fake pods end after a second, or when a test says so."""


@dataclass(slots=True)
class Replica:
    """One manager, which may be started again as the kubelet would."""

    process: Manager
    webhooks: int
    """Port of the webhooks."""
    is_running: bool = False
    past: list[str] = field(default_factory=list)
    """What earlier processes have written."""

    @property
    def name(self) -> str:
        return self.process.log.stem

    def start(self, *altered: str) -> None:
        """Start it and wait until it is ready.

        Args:
            altered: how it differs from the manager of this repository, see `altered_manager`.
        """
        self.past.append(self.process.output() if self.process.log.exists() else "")
        start = [sys.executable, str(ALTERED), *altered] if altered else [str(BIN / "trainer")]
        self.process.command = [*start, *self.process.command[self.process.command.index("manager") :]]
        self.process.start(ready="started manager")
        self.is_running = True

    def kill(self) -> float:
        """SIGKILL; returns when, by the monotonic clock."""
        self.process.send(signal.SIGKILL)
        killed = time.monotonic()
        self.process.wait()
        self.is_running = False
        return killed

    @property
    def identity(self) -> str:
        """What it writes into the lease."""
        waiting = next(line for line in self.process.output().splitlines() if '"waiting for leadership"' in line)
        return str(json.loads(waiting)["identity"])

    def everything(self) -> str:
        """What all its processes have written."""
        return "".join([*self.past, self.process.output()])


@dataclass(slots=True)
class Replicas:
    """The cluster and its two managers."""

    cluster: Cluster
    dev_cluster: Process
    both: tuple[Replica, Replica]
    balancer: Balancer

    @property
    def holder(self) -> str:
        """The identity in the lease; empty when nobody holds it."""
        lease = self.cluster.kubectl("get", "lease", LEASE, "-n", NAMESPACE, "-o", "json", "--ignore-not-found").stdout
        return str(json.loads(lease)["spec"].get("holderIdentity") or "") if lease else ""

    @property
    def leader(self) -> Replica:
        """The replica that holds the lease."""

        def leading() -> Replica | None:
            holder = self.holder
            return next((each for each in self.both if each.is_running and each.identity == holder), None)

        return until(leading, "a replica that runs holds the lease")

    @property
    def standby(self) -> Replica:
        """The other one."""
        leader = self.leader
        return next(each for each in self.both if each is not leader)

    def stop(self, replica: Replica) -> float:
        """End a replica as a Deployment does; returns when it was asked to, by the monotonic clock."""
        # While its preStop hook runs, API servers learn not to ask it any more.
        self.balancer.out.add(replica.webhooks)
        replica.process.send(signal.SIGTERM)
        reported = time.monotonic()
        assert replica.process.wait() == 0, replica.process.output()
        replica.is_running = False
        self.balancer.out.discard(replica.webhooks)
        return reported

    def restart_api_server(self) -> None:
        """SIGKILL the cluster, and start it again with what it had stored."""
        self.dev_cluster.send(signal.SIGKILL)
        self.dev_cluster.wait()
        self.dev_cluster.start(ready="cluster ready: ")

    def revive(self) -> list[Replica]:
        """Start those that have ended, as the kubelet would; returns them."""
        ended = [each for each in self.both if not each.is_running or each.process.exit_code() is not None]
        for each in ended:
            each.start()
        return ended

    def creations(self) -> dict[str, int]:
        """How often a manager has created each JobSet of the namespace, from the audit log."""
        log = audit.log_of_run()
        assert log is not None
        return dict(
            Counter(
                request.name
                for request in audit.requests_of_manager(log)
                if (request.resource, request.namespace, request.code) == ("jobsets", self.cluster.namespace, 201)
            )
        )

    def wait_for_state(self, state: str, names: Sequence[str], *, timeout: float = 90) -> None:
        """Wait until each of these TrainJobs is in this state."""
        others: list[str] = []

        def reached() -> bool:
            jobs = self.cluster.list("trainjobs")
            states = {job["metadata"]["name"]: (job.get("status") or {}).get("state") for job in jobs}
            others[:] = [f"{name} is {states.get(name, 'gone')}" for name in names if states.get(name) != state]
            return not others

        try:
            until(reached, f"all are {state}", timeout=timeout, pause=max(0.1, len(names) / 100))
        except AssertionError as error:
            raise AssertionError(f"{error}: {others[:20]}") from error

    def finish_pods(self) -> None:
        """Have all fake pods of the namespace succeed."""
        self.cluster.kubectl("annotate", "pods", "--all", "--overwrite", f"{RUNS_FOR}=0s")


@contextmanager
def running_replicas(directory: Path, *options: str) -> Iterator[Replicas]:
    """A cluster with both replicas and our webhooks, until the context closes.

    Args:
        directory: where files go.
        options: further options of `trainer cluster`.
    """
    kubeconfig = directory / "kubeconfig"
    port, *ports = free_ports(7)
    command = [str(BIN / "trainer"), "cluster", "--fake-pods", "--port", str(port), "--kubeconfig", str(kubeconfig)]
    dev_cluster = Process([*command, "--data-dir", str(directory / "data"), *options], directory / "cluster.log")
    with ExitStack() as stack:
        stack.callback(dev_cluster.stop)
        dev_cluster.start(ready="cluster ready: ")
        cluster = Cluster(
            kubeconfig,
            directory / "manager.kubeconfig",
            is_local=True,
            pod_network="",
            manager=Manager([], directory / "manager.log"),
        )
        first = _replica(cluster, directory, "first", (ports[0], ports[1], ports[2]))
        second = _replica(cluster, directory, "second", (ports[3], ports[4], ports[5]))
        balancer = stack.enter_context(balanced([first.webhooks, second.webhooks]))
        _install(cluster, f"https://{HOST}:{balancer.port}")
        for each in (first, second):
            stack.callback(each.process.stop)
            each.start()
        wait_for_trust(cluster)
        for name, time_of_pods in ((BRIEF, "1s"), (LONG, "24h")):
            cluster.apply(training_runtime(name, annotations={RUNS_FOR: time_of_pods}, kind="ClusterTrainingRuntime"))
        yield Replicas(cluster, dev_cluster, (first, second), balancer)


def _replica(cluster: Cluster, directory: Path, name: str, ports: tuple[int, int, int]) -> Replica:
    return Replica(manager(cluster, directory, name, **shipped_configuration(ports)), webhooks=ports[0])


def _install(cluster: Cluster, url: str) -> None:
    """Everything of config/ that is neither the Deployment nor its Service."""
    definitions = (CONFIG / "crd/trainer.kubeflow.org.yaml").read_text()
    cluster.belongings.create(cluster, *yaml.load_all(definitions, yaml.CSafeLoader))
    cluster.kubectl("wait", "--for=condition=Established", "crd/trainjobs.trainer.kubeflow.org", "--timeout=30s")
    cluster.belongings.create(cluster, *roles(cluster), *webhooks(cluster, url))
    write_credentials(cluster, cluster.manager_kubeconfig)


def fake_job(name: str, runtime: str = LONG, **spec: Any) -> dict[str, Any]:
    """A TrainJob of one of the runtimes above."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": runtime}, **spec},
    }
