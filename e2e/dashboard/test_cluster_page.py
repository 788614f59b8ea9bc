"""The page of a simulated cluster, which no test machine has, and the switchers of the header."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.dashboard.conftest import assert_accessible, on_each_screen, picture, show_on
from e2e.dashboard.test_many import GPU, RUNTIMES, Cluster, gpu_runtime, serving, train_job, workload
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.suspension import WORKLOADS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import NODES, Resource
from trainer_dashboard.requests.utilisation import NODE_METRICS
from trainer_dashboard.server import DashboardOptions, OtherCluster

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
KUEUE = WORKLOADS[0]
CLUSTER_QUEUES = Resource(KUEUE.group, KUEUE.version, "clusterqueues", "ClusterQueue", namespaced=False)
LOCAL_QUEUES = Resource(KUEUE.group, KUEUE.version, "localqueues", "LocalQueue")
MESSAGE = "insufficient unused quota for nvidia.com/gpu in flavor h100, 16 more needed"
OTHERS = [OtherCluster("staging", "trainer dashboard --context staging")]


def job(number: int, state: str, namespace: str = "vision", **conditions: str) -> Object:
    """A TrainJob whose conditions have these messages."""
    made = train_job(number, state=state)
    made["metadata"]["namespace"] = namespace
    made["spec"] = {"runtimeRef": {"name": "torch-distributed"}, "suspend": state == "Suspended"}
    made["status"]["conditions"] = [
        {
            "type": kind,
            "status": "False" if kind == "Created" else "True",
            "reason": "Because",
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, message in conditions.items()
    ]
    return made


def node(number: int) -> Object:
    """Every fourth has no GPUs; one is cordoned, one is lost and one has too little memory."""
    ready: Object = {"type": "Ready", "status": "True"}
    if number == 5:
        ready |= {"status": "Unknown", "message": "Kubelet stopped posting node status."}
    pressure = {"type": "MemoryPressure", "status": "True" if number == 6 else "False", "message": "out of memory"}
    gpus = {GPU: "8"} if number % 4 else {}
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels | {"node.kubernetes.io/instance-type": "large"}},
        "spec": {"unschedulable": number == 7},
        "status": {"allocatable": {"cpu": "96", "memory": "1Ti"} | gpus, "conditions": [ready, pressure]},
    }


def measured(number: int) -> Object:
    """What metrics-server says of it."""
    return {
        "apiVersion": NODE_METRICS.api_version,
        "kind": NODE_METRICS.kind,
        "metadata": {"name": f"node-{number}"},
        "usage": {"cpu": "7100m", "memory": "64Gi"},
    }


def pod(number: int, on: str, training: str, gpus: int) -> Object:
    """A pod of a training."""
    requests = {"cpu": "32", "memory": "256Gi", GPU: gpus}
    labels = {"jobset.sigs.k8s.io/jobset-name": training}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": "vision", "labels": labels},
        "spec": {"nodeName": on, "containers": [{"name": "node", "resources": {"requests": requests}}]},
        "status": {"phase": "Running"},
    }


def queues() -> list[Object]:
    """A queue of a namespace, and what it gives to it."""
    quotas = [{"name": GPU, "nominalQuota": 24, "borrowingLimit": 8}, {"name": "memory", "nominalQuota": "6Ti"}]
    reserved = [{"name": GPU, "total": 26, "borrowed": 2}, {"name": "memory", "total": "2Ti"}]
    return [
        {
            "apiVersion": CLUSTER_QUEUES.api_version,
            "kind": CLUSTER_QUEUES.kind,
            "metadata": {"name": "department"},
            "spec": {"cohort": "all", "resourceGroups": [{"flavors": [{"name": "h100", "resources": quotas}]}]},
            "status": {
                "flavorsReservation": [{"name": "h100", "resources": reserved}],
                "conditions": [{"type": "Active", "status": "False", "message": "Can't admit: is stopped"}],
            },
        },
        {
            "apiVersion": LOCAL_QUEUES.api_version,
            "kind": LOCAL_QUEUES.kind,
            "metadata": {"name": "research", "namespace": "vision"},
            "spec": {"clusterQueue": "department"},
        },
    ]


def cluster(*objects: Object, nodes: int = 12) -> Cluster:
    """A cluster with GPUs, Kueue and metrics-server."""
    return Cluster(
        *objects,
        gpu_runtime(),
        *map(node, range(nodes)),
        *map(measured, range(nodes)),
        *queues(),
        resources=[TRAIN_JOBS, *RUNTIMES, KUEUE, CLUSTER_QUEUES, LOCAL_QUEUES, NODE_METRICS],
    )


@on_each_screen
def test_cluster(page: Page, scheme: str, width: int) -> None:
    """The page says what is requested, what waits and why, what queues give, and the state of nodes with their GPUs."""
    show_on(page, scheme, width)
    client = cluster(
        job(0, "Running"),
        job(1, "Suspended"),
        job(2, "Blocked", Created="the runtime torch-distribted does not exist"),
        *(job(number, "Running") for number in range(10, 14)),
        *(pod(number, "node-1", f"job-{number}", 2) for number in range(10, 14)),
        pod(0, "node-2", "job-0", 6),
        pod(1, "node-2", "no-train-job", 0),
        workload("job-1", 5, MESSAGE),
    )
    with serving(client, options=DashboardOptions(cluster="https://gpus.example.com", name="gpus")) as (url, _):
        page.goto(url("/cluster"))
        gpus = page.get_by_role("list", name="Resources").get_by_role("listitem").filter(has_text="H100")
        expect(gpus).to_contain_text("42 free of 72")
        expect(gpus).to_contain_text("14 requested")
        expect(gpus).to_contain_text("16 on closed nodes")
        waiting = page.get_by_role("table", name="Waiting")
        expect(waiting.get_by_role("row", name="job-1")).to_contain_text(MESSAGE)
        expect(waiting.get_by_role("row", name="job-1")).to_contain_text("place 1")
        expect(waiting.get_by_role("row", name="job-2")).to_contain_text("torch-distribted")
        queue = page.get_by_role("list", name="Queues").get_by_role("listitem")
        expect(queue).to_contain_text("26 of 24 reserved, 2 of it borrowed")
        expect(queue).to_contain_text("is stopped")
        expect(queue).to_contain_text("research vision")
        picture(page, f"cluster-{scheme}-{width}")
        nodes = page.get_by_role("table", name="Nodes")
        page.get_by_role("heading", name="Nodes").evaluate("heading => scrollTo(0, heading.offsetTop - 60)")
        expect(nodes.get_by_role("link", name="job-0")).to_be_visible()
        assert_accessible(page)
        picture(page, f"cluster-nodes-{scheme}-{width}")
        page.get_by_role("button", name="With problems 3").click()
        expect(nodes.get_by_role("row", name="node-5")).to_contain_text("Unreachable")
        expect(nodes.get_by_role("row", name="node-6")).to_contain_text("Memory pressure")
        expect(nodes.get_by_role("row", name="node-7")).to_contain_text("Cordoned")
        page.get_by_role("button", name="All 12").click()
        page.get_by_role("searchbox", name="Search nodes").fill("vision/job-1")
        row = nodes.get_by_role("row", name="node-1", exact=False).first
        expect(row).to_contain_text("8 of 8")
        row.get_by_text("2 more").click()
        expect(row.get_by_role("link", name="job-13")).to_be_visible()
        assert_accessible(page)
        page.get_by_role("searchbox", name="Search nodes").fill("node-2")
        expect(nodes).to_contain_text("1 other pod")
        expect(nodes.get_by_role("link", name="no-train-job")).to_have_count(0)
        nodes.get_by_role("link", name="job-0").click()
        expect(page.get_by_role("heading", name="job-0 vision")).to_be_visible()


def test_many(page: Page) -> None:
    """Of 500 nodes and 3,000 TrainJobs those on the screen are in the document; groups are opened, and all is found."""
    jobs = [job(number, "Running" if number % 3 else "Blocked", Created="no runtime") for number in range(3000)]
    with serving(cluster(*jobs, nodes=500)) as (url, _):
        page.goto(url("/cluster"))
        expect(page.get_by_text("1000 wait")).to_be_visible(timeout=30_000)
        nodes = page.get_by_role("table", name="Nodes")
        nodes.scroll_into_view_if_needed()
        expect(nodes.get_by_role("row")).to_have_count(3)
        waiting = page.get_by_role("table", name="Waiting")
        waiting.get_by_role("link").first.focus()
        page.keyboard.press("ArrowDown")
        expect(waiting.get_by_role("link").nth(1)).to_be_focused()
        page.get_by_role("button", name="Show all 1000").click()
        assert waiting.get_by_role("row").count() < 60
        page.get_by_role("button", name="Show the first 8").click()
        page.get_by_role("button", name="No GPUs 125").click()
        expect(nodes.get_by_text("node-8", exact=True)).to_be_visible()
        assert nodes.get_by_role("row").count() < 60
        page.get_by_role("searchbox", name="Search nodes").fill("node-499")
        expect(nodes.get_by_role("row")).to_have_count(2)


def test_rights(page: Page) -> None:
    """Who may not list nodes reads why there are none, and sees what waits."""
    client = cluster(job(0, "Blocked", Created="no runtime"))
    client.faults.fail(ForbiddenError(403, "nodes is forbidden"), verb="list", resource=NODES, times=None)
    with serving(client) as (url, _):
        page.goto(url("/cluster"))
        expect(page.get_by_role("region", name="Capacity")).to_contain_text("you may not list nodes")
        expect(page.get_by_role("table", name="Waiting")).to_contain_text("no runtime")
        assert_accessible(page)


def test_switchers(page: Page) -> None:
    """A namespace that is chosen stays over the views, and the menu of the cluster has the ways to others."""
    jobs = [job(0, "Blocked", Created="no runtime"), job(1, "Blocked", "speech", Created="no data")]
    options = DashboardOptions(cluster="https://gpus.example.com", name="gpus", others=OTHERS)
    with serving(cluster(*jobs), options=options) as (url, _):
        page.goto(url("/cluster"))
        waiting = page.get_by_role("table", name="Waiting")
        expect(waiting.get_by_role("row")).to_have_count(3)
        page.get_by_role("combobox", name="Namespace").select_option("speech")
        expect(waiting.get_by_role("row")).to_have_count(2)
        page.get_by_role("link", name="TrainJobs").click()
        expect(page.get_by_role("status")).to_have_text("1 of 2 TrainJobs")
        page.get_by_role("link", name="job-1").click()
        expect(page.get_by_role("combobox", name="Namespace")).to_have_value("speech")
        page.get_by_role("combobox", name="Namespace").select_option("")
        expect(page.get_by_role("status")).to_have_text("2 of 2 TrainJobs")
        menu = page.get_by_label("Cluster gpus")
        menu.click()
        expect(page.get_by_text("trainer dashboard --context staging")).to_be_visible()
        assert_accessible(page)
        page.keyboard.press("Escape")
        expect(menu).to_be_focused()


def test_a_lost_cluster(page: Page) -> None:
    """While the dashboard has lost its cluster the page is not live, although the dashboard still answers."""
    client = cluster(job(0, "Running"))
    with serving(client) as (url, portal):
        page.goto(url("/"))
        expect(page.get_by_text("Live", exact=False)).to_be_visible()
        portal.call(client.faults.refuse_connections)
        expect(page.get_by_text("Reconnecting")).to_be_visible()
        assert_accessible(page)
        portal.call(client.faults.accept_connections)
        expect(page.get_by_text("Live", exact=False)).to_be_visible()
