"""The place of the Go manager is taken, and given back, on its definitions and with the roles of config/v1alpha1.

What it leaves is played on a cluster without a manager, and so is what it does with what is made here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import audit
from e2e import released_manager as released
from e2e.cluster import Cluster
from e2e.gang_schedulers import COSCHEDULING
from e2e.gang_schedulers import install as install_scheduler
from e2e.installation import CONFIG
from e2e.kubectl import Kubectl
from e2e.released_cluster import USER, install, released_cluster, remove_manager
from e2e.waiting import until

Object = dict[str, Any]

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.timeout(300),
]
KINDS = "jobsets,podgroups.scheduling.x-k8s.io,configmaps,secrets"
EXTENSION = "trainer.kubeflow.org/status-extension-of-"
TORCH: Object = {"numNodes": 1, "torch": {}}
MPI: Object = {
    "numProcPerNode": 1,
    "mpiImplementation": "OpenMPI",
    "sshAuthMountPath": "/keys",
    "runLauncherAsNode": True,
}
SLEEP, END = ["sleep", "600"], ["true"]
PROGRESS = {"progressPercentage": 40, "estimatedRemainingSeconds": 90, "currentStep": 4, "trainMetrics": {"loss": 0.5}}
REPORT = f"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {json.dumps(PROGRESS)}"


@dataclass(slots=True)
class Site(Kubectl):
    """A namespace in which the Go manager has worked."""

    cluster: Cluster

    def apply(self, *objects: Object, field_manager: str = "kubectl") -> None:
        """Server-side apply, as the Go manager does."""
        options = ["--server-side", "--force-conflicts", f"--field-manager={field_manager}"]
        self.kubectl("apply", *options, "-f", "-", stdin=yaml.dump_all(objects, Dumper=yaml.CSafeDumper))

    def leave(self, runtime: Object, name: str, command: list[str], status: Object | None, **spec: Any) -> None:
        """The Go manager makes a TrainJob, and patches its status."""
        self.apply(runtime)
        blueprint = self.stored("clustertrainingruntime", runtime["metadata"]["name"])
        del blueprint["metadata"]["managedFields"]
        trainer = {"numNodes": 2, "command": command}
        self.apply(released.train_job(name, runtime["metadata"]["name"], trainer=trainer, **spec))
        owner = self.stored("trainjob", name)
        self.apply(*released.children(owner, blueprint), field_manager=released.FIELD_MANAGER)
        if status is not None:
            patch = ["--subresource=status", "--type=merge", "--field-manager=manager", "-p"]
            self.kubectl("patch", "trainjob", name, *patch, json.dumps({"status": status}))

    def stored(self, kind: str, name: str) -> Object:
        """An object that exists."""
        found = json.loads(self.kubectl("get", kind, name, "-o", "json", "--show-managed-fields").stdout)
        assert isinstance(found, dict)
        return found

    def pods(self, name: str) -> dict[str, str]:
        """The pods of a TrainJob that run, with their uids."""
        label = f"jobset.sigs.k8s.io/jobset-name={name}"
        found = json.loads(self.kubectl("get", "pods", "-l", label, "-o", "json").stdout)["items"]
        running = [pod for pod in found if pod["status"]["phase"] == "Running"]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in running}

    def children(self) -> dict[str, str]:
        """All that TrainJobs own, with uids."""
        return {
            f"{obj['kind']}/{obj['metadata']['name']}": obj["metadata"]["uid"]
            for obj in self.list(KINDS)
            if any(owner["kind"] == "TrainJob" for owner in obj["metadata"].get("ownerReferences", []))
        }

    def status(self, name: str) -> Object:
        """Of a TrainJob."""
        found: Object = self.stored("trainjob", name).get("status") or {}
        return found

    def is_annotated(self, name: str) -> bool:
        """Whether the manager has written what the definitions do not keep of the status."""
        annotations: Object = self.stored("trainjob", name)["metadata"].get("annotations") or {}
        return any(each.startswith(EXTENSION) for each in annotations)

    def columns(self, name: str) -> list[str]:
        """What `kubectl get` shows of a TrainJob, without name and age."""
        header, row = self.kubectl("get", "trainjob", name).stdout.splitlines()
        assert header.split() == ["NAME", "STATE", "AGE"]
        return row.split()[1:-1]

    def states(self) -> dict[str, str]:
        """What `trainer get` shows of each TrainJob."""
        rows = [row.split() for row in self.cluster.trainer("get").stdout.splitlines()[1:]]
        return {row[0]: row[1] for row in rows}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster with neither a manager nor webhooks."""
    directory = tmp_path_factory.mktemp("released")
    with released_cluster(directory) as cluster:
        install_scheduler(cluster, COSCHEDULING)
        yield Site(cluster.kubeconfig, replace(cluster, namespace="default"), namespace="default")


@pytest.fixture(scope="module")
def before(empty: Site) -> tuple[Site, dict[str, Object]]:
    """What the Go manager leaves: trainings that run, wait and have ended, and what it was like then."""
    site = empty
    node = released.replicated_job("node", ancestor="trainer")
    launcher = released.replicated_job("launcher", ancestor="trainer", depends_on="node")
    torch = released.runtime("torch", node, mlPolicy=TORCH)
    torch["metadata"]["finalizers"] = [released.FINALIZER]
    gang = released.runtime("gang", node, mlPolicy=TORCH, podGroupPolicy={"coscheduling": {}})
    mpi = released.runtime("mpi", released.replicated_job("node"), launcher, mlPolicy={"numNodes": 1, "mpi": MPI})
    suspended: Object = {"conditions": [released.SUSPENDED], "jobsStatus": [released.jobs_status(suspended=1)]}
    ended: Object = {"conditions": [released.RESUMED, released.COMPLETE]}
    running: Object = {"jobsStatus": [released.jobs_status(active=1)]}
    site.leave(torch, "running", SLEEP, running)
    site.leave(gang, "gang", SLEEP, running)
    site.leave(torch, "waiting", END, suspended, suspend=True)
    site.leave(mpi, "mpi", SLEEP, suspended, suspend=True)
    site.leave(torch, "woken", SLEEP, suspended, suspend=True)
    site.leave(torch, "resumed", END, suspended, suspend=True)
    site.leave(torch, "done", END, ended | {"jobsStatus": [released.jobs_status(succeeded=1)]}, suspend=True)
    until(lambda: all(len(site.pods(name)) == 2 for name in ("running", "gang")), "two pods of each run")
    site.kubectl("delete", "jobset", "done")
    site.kubectl("patch", "trainjob", "resumed", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    seen = {
        "children": site.children(),
        "done": site.status("done"),
        "jobsets": {obj["metadata"]["name"]: obj for obj in site.list("jobsets")},
        "pods": {name: site.pods(name) for name in ("running", "gang")},
        "groups": {obj["metadata"]["name"]: obj for obj in site.list("podgroups.scheduling.x-k8s.io")},
        "hostfile": site.stored("configmap", "mpi-mpi-hostfile"),
    }
    # What runs and waits was built on the runtime of before.
    edited = released.runtime("torch", released.replicated_job("another", ancestor="trainer"), mlPolicy=TORCH)
    site.apply(edited | {"metadata": torch["metadata"]})
    assert site.stored("clustertrainingruntime", "torch")["metadata"]["finalizers"] == [released.FINALIZER]
    return site, seen


@pytest.fixture(scope="module")
def taken_over(before: tuple[Site, dict[str, Object]]) -> tuple[Site, dict[str, Object]]:
    """The same with this manager, which has looked at everything."""
    site, seen = before
    cluster = replace(site.cluster, namespace="")
    install(cluster)
    site.cluster.manager = cluster.manager
    until(lambda: all(map(site.is_annotated, site.states())), "the manager has looked at all of them")
    return site, seen


def test_nothing_restarts(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """Pods, JobSets and PodGroups of what runs are the very same, and nothing is made twice."""
    site, seen = taken_over
    names = ("running", "gang")
    until(lambda: {site.states()[name] for name in names} == {"Running"}, "both are reported to run")
    for name in names:
        assert site.pods(name) == seen["pods"][name]
        jobset = site.stored("jobset", name)["metadata"]
        assert jobset["generation"] == seen["jobsets"][name]["metadata"]["generation"]
        assert "conditions" not in site.status(name)
    assert site.stored("podgroups.scheduling.x-k8s.io", "gang")["spec"] == seen["groups"]["gang"]["spec"]
    assert site.children() == seen["children"]


def test_what_has_ended(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """It stays so, as it was, without a new JobSet."""
    site, seen = taken_over
    status = site.status("done")
    assert site.states()["done"] == "Complete"
    assert status["conditions"] == seen["done"]["conditions"]
    assert status["jobsStatus"] == seen["done"]["jobsStatus"]
    assert site.get("jobset", "done") is None


def test_what_was_resumed_meanwhile(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """A TrainJob that was resumed while no manager ran starts and ends."""
    site, _ = taken_over
    site.kubectl("wait", "trainjob/resumed", "--for=condition=Complete", "--timeout=60s")


def test_what_runs_is_not_called_suspended(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """The column STATE of the released definitions has the type of the last condition, whatever its status."""
    site, _ = taken_over
    assert "Suspended" in site.kubectl("get", "trainjob", "woken").stdout
    site.kubectl("patch", "trainjob", "woken", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    until(lambda: site.states()["woken"] == "Running", "it runs")
    assert "Suspended" not in site.kubectl("get", "trainjob", "woken").stdout


def test_what_waits(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """It can be resumed, and runs what it was made of."""
    site, seen = taken_over
    before = seen["jobsets"]["waiting"]
    assert site.stored("jobset", "waiting")["spec"] == before["spec"]
    site.kubectl("patch", "trainjob", "waiting", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    site.kubectl("wait", "trainjob/waiting", "--for=condition=Complete", "--timeout=60s")
    after = site.stored("jobset", "waiting")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"] | {"suspend": False}


def test_mpi(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """Keys and host file are those of before, which the pods will mount."""
    site, seen = taken_over
    assert site.stored("jobset", "mpi")["spec"] == seen["jobsets"]["mpi"]["spec"]
    assert site.stored("configmap", "mpi-mpi-hostfile")["data"] == seen["hostfile"]["data"]
    secrets = [obj["metadata"]["name"] for obj in site.list("secrets") if "mpi" in obj["metadata"]["name"]]
    assert secrets == ["mpi-mpi-ssh-auth"]


def test_deleting(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """A runtime that has the finalizer of early releases can be deleted in use; a TrainJob goes with all of its own."""
    site, _ = taken_over
    site.kubectl("delete", "clustertrainingruntime", "torch", "--timeout=30s")
    site.kubectl("patch", "trainjob", "running", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    until(lambda: not site.pods("running"), "the pods of the suspended TrainJob are gone")
    site.kubectl("delete", "trainjob", "running", "--timeout=30s")
    until(lambda: not [name for name in site.children() if "/running" in name], "all that it owned is gone")


def test_the_way_back(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """What is made here has the names, owners and content that the Go manager looks for."""
    site, _ = taken_over
    gang = site.stored("clustertrainingruntime", "gang")
    site.apply(released.train_job("new", "gang", trainer={"numNodes": 2, "command": SLEEP}, suspend=True))
    until(lambda: site.get("jobset", "new"), "the JobSet is made")
    owner = site.stored("trainjob", "new")
    for child in released.children(owner, gang):
        made = site.stored(child["kind"].lower(), child["metadata"]["name"])
        assert made["metadata"]["ownerReferences"] == child["metadata"]["ownerReferences"]
        managers = {entry["manager"] for entry in made["metadata"]["managedFields"] if "subresource" not in entry}
        assert released.FIELD_MANAGER in managers
    for name in ("new", "gang"):
        runtime = yaml.load(site.stored("configmap", f"{name}-runtime-snapshot")["data"]["runtime"], yaml.CSafeLoader)
        assert (runtime["apiVersion"], runtime["kind"]) == (released.API_VERSION, "ClusterTrainingRuntime")
        assert runtime["metadata"]["name"] == "gang"
        assert runtime["spec"] == gang["spec"]
    assert {each["type"] for each in site.status("new")["conditions"]} == {"Suspended"}


def test_a_life(taken_over: tuple[Site, dict[str, Object]], tmp_path: Path) -> None:
    """A new one reports its progress and completes; what the released definitions do not keep is in annotations."""
    site, _ = taken_over
    node = released.replicated_job("node", ancestor="trainer")
    line = f"echo '{REPORT}'; until test -e {tmp_path}/go; do sleep 0.2; done"
    site.apply(
        released.runtime("own", node, mlPolicy=TORCH),
        released.train_job("life", "own", trainer={"numNodes": 2, "command": ["sh", "-c", line]}),
        released.train_job("empty", "own", trainer={"numNodes": 0}, suspend=True),
    )
    progress = until(lambda: site.status("life").get("trainerStatus"), "it reports its progress")
    del progress["lastUpdatedTime"]
    metrics = [{"name": "loss", "value": "0.5"}]
    assert progress == {"progressPercentage": 40, "estimatedRemainingSeconds": 90, "metrics": metrics}
    until(lambda: site.states()["life"] == "Running", "it runs")
    assert site.columns("life") == []
    annotations = site.stored("trainjob", "life")["metadata"]["annotations"]
    owners = {name.removeprefix(EXTENSION) for name in annotations if name.startswith(EXTENSION)}
    assert owners == {"trainer", "trainer-progress"}

    (tmp_path / "go").touch()
    site.kubectl("wait", "trainjob/life", "--for=condition=Complete", "--timeout=60s")
    assert [each["type"] for each in site.status("life")["conditions"]] == ["Complete"]
    assert site.columns("life") == ["Complete"]
    assert site.states()["life"] == "Complete"
    # Kubernetes completes Jobs that want no pods, also while they are suspended.
    site.kubectl("wait", "trainjob/empty", "--for=condition=Complete", "--timeout=60s")
    assert [each["type"] for each in site.status("empty")["conditions"]] == ["Suspended", "Complete"]


def test_own_definitions(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """When those of config/v1alpha1 take the place of the released ones, the status has what was annotated."""
    site, seen = taken_over
    states = site.states()
    site.cluster.manager.stop()
    file = str(CONFIG / "v1alpha1" / "crd" / "trainer.kubeflow.org.yaml")
    site.kubectl("apply", "--server-side", "--force-conflicts", "-f", file)
    site.cluster.manager.start(ready="started manager")

    def stored() -> dict[str, str]:
        return {name: site.status(name).get("state", "") for name in states}

    until(lambda: stored() == states, lambda: f"the status has the states {states}, not {stored()}")
    assert site.pods("gang") == seen["pods"]["gang"]
    assert site.status("done")["conditions"] == seen["done"]["conditions"]


def test_requests(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """The roles allow all that the manager has asked for, and rights that only these definitions need were used."""
    site, _ = taken_over
    requests = list(audit.requests_of_manager(site.cluster.kubeconfig.with_name("audit.log"), USER))
    assert [each for each in requests if each.is_refused] == []
    patched = {each.resource for each in requests if each.verb == "patch"}
    assert {"trainjobs", "trainjobs/status", "clustertrainingruntimes"} <= patched


def test_the_released_manager_resumes(taken_over: tuple[Site, dict[str, Object]]) -> None:
    """What is suspended here runs when that manager applies what it makes of the resumed TrainJob."""
    site, _ = taken_over
    gang = site.stored("clustertrainingruntime", "gang")
    remove_manager(site.cluster)
    before = site.stored("jobset", "new")
    site.kubectl("patch", "trainjob", "new", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    snapshot, *others = released.children(site.stored("trainjob", "new"), gang)
    assert site.stored("configmap", snapshot["metadata"]["name"])
    site.apply(*others, field_manager=released.FIELD_MANAGER)
    until(lambda: len(site.pods("new")) == 2, "its pods run")
    after = site.stored("jobset", "new")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"] | {"suspend": False}
