"""The manager with the roles of config/v1alpha1 on the definitions of the released Trainer, which nobody has changed.

They keep conditions, counts and part of the progress; the rest of a status stands in annotations.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import audit
from e2e import released_manager as released
from e2e.cluster import IMAGE, Cluster
from e2e.installation import CONFIG, HOST, free_ports
from e2e.manager import manager
from e2e.released_cluster import USER, install, released_cluster
from e2e.waiting import until

Object = dict[str, Any]

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.timeout(240),
]
EXTENSION = "trainer.kubeflow.org/status-extension-of-"
KEPT = {"conditions", "jobsStatus", "trainerStatus"}
PROGRESS = {"progressPercentage": 40, "estimatedRemainingSeconds": 90, "currentStep": 4, "trainMetrics": {"loss": 0.5}}
REPORT = f"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {json.dumps(PROGRESS)}"
EXPECTED = {
    ("get", "leases", 404),
    ("update", "leases", 409),
    ("update", "leases", 499),
    ("watch", "podgroups", 404),
    ("watch", "resourceclaimtemplates", 404),
    ("get", "pods/log", 404),
    ("get", "pods/log", 499),
    ("get", "configmaps", 404),
    ("patch", "jobsets", 409),
    ("patch", "trainjobs/status", 409),
}
"""The first leader makes the lease. On a busy machine it gives up a renewal that takes too long, which may have been
carried out when the next one comes. Two kinds are optional. Pods may go while the manager asks for their logs, as
may their TrainJobs, when it hangs up before the answer. ConfigMaps that nobody watches are asked for before they are
made, and the cache may show objects as they no longer are."""
POST = """
import datetime, json, os, ssl, urllib.request
name = "KUBEFLOW_TRAINER_SERVER_"
context = ssl.create_default_context(cafile=os.environ[name + "CA_CERT"])
token = open(os.environ[name + "TOKEN"]).read()
now = datetime.datetime.now(datetime.timezone.utc).isoformat()
metrics = [{"name": "loss", "value": "0.1"}]
body = {"trainerStatus": {"progressPercentage": 70, "metrics": metrics, "lastUpdatedTime": now}}
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
request = urllib.request.Request(os.environ[name + "URL"], json.dumps(body).encode(), headers)
urllib.request.urlopen(request, context=context)
"""
TRAIN = 'echo "$1"; until test -e "$0"; do sleep 0.2; done'
"""Reports, and waits for a file."""


@dataclass
class Site:
    """A cluster of the released Trainer, with the files that its trainings wait for."""

    cluster: Cluster
    files: Path

    def train(self, name: str, *command: str, nodes: int = 2, runtime: str = "own", **spec: Any) -> None:
        """Create a TrainJob; without a command it reports its progress, and ends when `go` is called."""
        script = command or ("sh", "-c", TRAIN, str(self.files / name), REPORT)
        trainer = {"image": IMAGE, "numNodes": nodes, "command": [*script]}
        self.cluster.apply(released.train_job(name, runtime, trainer=trainer, **spec))

    def go(self, name: str) -> None:
        """Let it end."""
        (self.files / name).touch()

    def suspend(self, name: str, whether: bool) -> None:
        """Change `spec.suspend`."""
        patch = json.dumps({"spec": {"suspend": whether}})
        self.cluster.kubectl("patch", "trainjob", name, "--type=merge", "-p", patch)

    def stored(self, name: str) -> Object:
        """A TrainJob that exists."""
        found = self.cluster.get("trainjob", name)
        assert found is not None
        return found

    def conditions(self, name: str) -> list[tuple[str, str]]:
        """Type and status of each, in their order."""
        status = self.stored(name).get("status") or {}
        assert status.keys() <= KEPT
        return [(each["type"], each["status"]) for each in status.get("conditions") or []]

    def columns(self, name: str) -> list[str]:
        """What `kubectl get` shows of it, without name and age."""
        header, row = self.cluster.kubectl("get", "trainjob", name).stdout.splitlines()
        assert header.split() == ["NAME", "STATE", "AGE"]
        return row.split()[1:-1]

    def state(self, name: str) -> str:
        """What `trainer get` shows of it."""
        return self.cluster.trainer("get", name).stdout.splitlines()[1].split()[1]

    def wait_for_state(self, name: str, state: str) -> None:
        """Wait for what `trainer get` shows."""
        until(lambda: self.state(name) == state, lambda: f"{name} is {state}, not {self.state(name)}")

    def pods(self, name: str) -> list[Object]:
        """Of a TrainJob."""
        labels = f"jobset.sigs.k8s.io/jobset-name={name}"
        found: list[Object] = json.loads(self.cluster.kubectl("get", "pods", "-l", labels, "-o", "json").stdout)[
            "items"
        ]
        return found

    def versions(self) -> dict[str, str]:
        """Of all TrainJobs."""
        objects = self.cluster.list("trainjobs")
        return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in objects}

    def settled(self) -> dict[str, str]:
        """The versions, if none changes while the manager renews its lease three times; else nothing."""
        versions, renewals = self.versions(), self.renewals()
        until(lambda: self.renewals() >= renewals + 3, "the manager renews its lease")
        return versions if versions == self.versions() else {}

    def renewals(self) -> int:
        """How often the manager has written its lease."""
        return sum(each.resource == "leases" and each.verb != "get" for each in self.requests())

    def requests(self) -> list[audit.Request]:
        """All requests of the manager that have been answered."""
        return list(audit.requests_of_manager(self.files / "audit.log", USER))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster with the manager, all runtimes of config/v1alpha1, and one of its own."""
    directory = tmp_path_factory.mktemp("released")
    # Pods on the network of this machine reach the manager, to which one posts.
    with released_cluster(directory, "--pod-network", "hosts") as cluster:
        install(cluster)
        cluster.kubectl("apply", "--server-side", "-k", str(CONFIG / "v1alpha1" / "runtimes"))
        node = released.replicated_job("node", ancestor="trainer")
        node["template"]["spec"]["backoffLimit"] = 0
        cluster.belongings.create(cluster, released.runtime("own", node, mlPolicy={"numNodes": 1, "torch": {}}))
        yield Site(replace(cluster, namespace="default"), directory)


def test_a_life(site: Site) -> None:
    """It runs, reports its progress, and completes; what the definitions do not keep is in annotations."""
    site.train("life")

    progress = until(lambda: (site.stored("life").get("status") or {}).get("trainerStatus"), "it reports its progress")
    del progress["lastUpdatedTime"]
    metrics = [{"name": "loss", "value": "0.5"}]
    assert progress == {"progressPercentage": 40, "estimatedRemainingSeconds": 90, "metrics": metrics}
    site.wait_for_state("life", "Running")
    assert "40" in site.cluster.trainer("get", "life").stdout
    assert site.conditions("life") == []
    assert site.columns("life") == []
    (jobs,) = site.stored("life")["status"]["jobsStatus"]
    assert (jobs["name"], jobs["active"]) == ("node", 1)
    annotations = site.stored("life")["metadata"]["annotations"]
    owners = {name.removeprefix(EXTENSION) for name in annotations if name.startswith(EXTENSION)}
    assert owners == {"trainer", "trainer-progress"}

    site.go("life")
    site.cluster.wait_for_condition("life", "Complete")
    assert site.conditions("life") == [("Complete", "True")]
    assert site.columns("life") == ["Complete"]
    assert site.state("life") == "Complete"
    assert site.stored("life")["status"]["trainerStatus"]["progressPercentage"] == 40


def test_a_failure(site: Site) -> None:
    """It fails, with the reason in its only condition."""
    site.train("failure", "sh", "-c", "echo too bad; exit 3", nodes=1)

    site.cluster.wait_for_condition("failure", "Failed")
    (condition,) = site.stored("failure")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Failed", "FailedJobs")
    assert site.columns("failure") == ["Failed"]
    assert site.state("failure") == "Failed"


def test_suspended_and_resumed(site: Site) -> None:
    """It says so while it is suspended, nothing while it runs, and that it was resumed when it has ended."""
    site.train("paused", suspend=True)
    until(lambda: site.conditions("paused") == [("Suspended", "True")], "it is suspended")
    assert site.columns("paused") == ["Suspended"]
    assert site.pods("paused") == []

    site.suspend("paused", False)
    site.wait_for_state("paused", "Running")
    assert site.conditions("paused") == []
    site.suspend("paused", True)
    until(lambda: site.conditions("paused") == [("Suspended", "True")], "it is suspended again")
    until(lambda: site.pods("paused") == [], "its pods have ended")

    site.suspend("paused", False)
    site.go("paused")
    site.cluster.wait_for_condition("paused", "Complete")
    assert site.conditions("paused") == [("Suspended", "False"), ("Complete", "True")]
    assert site.columns("paused") == ["Complete"]


def test_no_nodes(site: Site) -> None:
    """It completes even while it is suspended, as Kubernetes completes Jobs that want no pods."""
    site.train("empty", nodes=0, suspend=True)
    site.cluster.wait_for_condition("empty", "Complete")
    assert site.conditions("empty") == [("Suspended", "True"), ("Complete", "True")]
    assert site.pods("empty") == []


def test_a_change_of_the_runtime(site: Site) -> None:
    """It is accepted; what was created before keeps the runtime of before, and what comes later has the new one."""
    own = site.cluster.get("clustertrainingruntime", "own")
    assert own is not None
    site.train("before", suspend=True)
    until(lambda: site.cluster.get("jobset", "before"), "its JobSet exists")

    (job,) = own["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "EDITED", "value": "yes"}]
    site.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=without_managers(own))
    site.train("after", "sh", "-c", 'test "$EDITED" = yes')
    site.cluster.wait_for_condition("after", "Complete")

    site.suspend("before", False)
    site.wait_for_state("before", "Running")
    assert "EDITED" not in json.dumps(site.cluster.get("jobset", "before"))


def without_managers(obj: Object) -> str:
    """As YAML, to be applied."""
    metadata = {name: obj["metadata"][name] for name in ("name", "labels")}
    return yaml.safe_dump(obj | {"metadata": metadata})


def test_the_finalizer_of_early_releases(site: Site) -> None:
    """It is removed, so that the runtime can be deleted."""
    runtime = released.runtime("early", released.replicated_job("node", ancestor="trainer"))
    runtime["metadata"]["finalizers"] = [released.FINALIZER]
    site.cluster.apply(runtime)
    site.cluster.kubectl("delete", "clustertrainingruntime", "early", "--timeout=30s")


def test_rest(site: Site) -> None:
    """After a restart the manager reads all of it, and writes nothing about what has not changed."""
    site.train("rests")
    until(lambda: (site.stored("rests").get("status") or {}).get("trainerStatus"), "it reports its progress")
    site.wait_for_state("rests", "Running")
    site.train("waits", suspend=True)
    until(lambda: site.conditions("waits") == [("Suspended", "True")], "it is suspended")
    versions = until(site.settled, "nothing changes any more")

    site.cluster.manager.stop()
    before = len(site.requests())
    site.cluster.manager.start(ready="started manager")
    site.train("marker", "true")
    site.cluster.wait_for_condition("marker", "Complete")

    now = site.versions()
    assert {name: now[name] for name in versions} == versions
    written = {
        (each.verb, each.resource, each.name)
        for each in site.requests()[before:]
        if each.namespace == "default" and each.verb not in {"get", "list", "watch"} and "marker" not in each.name
    }
    assert written == set()


def test_pushed_progress(site: Site) -> None:
    """With the gate on, a pod posts its progress as it does to the released Trainer, and the roles allow all of it."""
    (port,) = free_ports(1)
    gated = manager(
        site.cluster,
        site.files,
        "gated",
        featureGates={"TrainJobStatus": True},
        statusServer={"host": HOST, "port": port, "url": f"https://{HOST}:{port}"},
    )
    site.cluster.manager.stop()
    gated.start(ready="started manager")
    try:
        site.train("posting", sys.executable, "-c", POST, nodes=1)
        site.cluster.wait_for_condition("posting", "Complete")
    finally:
        gated.stop()
        site.cluster.manager.start(ready="started manager")
    progress = site.stored("posting")["status"]["trainerStatus"]
    assert (progress["progressPercentage"], progress["metrics"]) == (70, [{"name": "loss", "value": "0.1"}])


def test_deleting(site: Site) -> None:
    """With a TrainJob that runs all goes that belonged to it."""
    site.train("deleted")
    site.wait_for_state("deleted", "Running")

    site.cluster.kubectl("delete", "trainjob", "deleted", "--timeout=60s")

    def left() -> list[str]:
        names = [obj["metadata"]["name"] for obj in site.cluster.list("jobsets,jobs,pods,configmaps")]
        return [name for name in names if name.startswith("deleted")]

    until(lambda: not left(), "all that it owned is gone")


def test_requests(site: Site) -> None:
    """None was refused, none failed but for a reason; rights that only these definitions need were used."""
    requests = site.requests()
    failed = {(each.verb, each.resource, each.code) for each in requests if each.code >= 400}
    assert failed <= EXPECTED
    patched = {each.resource for each in requests if each.verb == "patch"}
    assert {"trainjobs", "trainjobs/status", "clustertrainingruntimes"} <= patched
