"""Clusters that are simulated: with thousands of TrainJobs, and with GPUs and queues, which no test machine has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from e2e.dashboard.conftest import assert_accessible, on_each_screen, picture, show_on
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain.suspension import WORKLOADS
from trainer.kube.client import ObjectRequest
from trainer.kube.errors import ForbiddenError
from trainer.v1alpha1.discovery import V2ALPHA1
from trainer_dashboard.access.authenticator import LoopbackAuthenticator
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.requests.claimed_devices import RESOURCE_CLAIMS, RESOURCE_SLICES
from trainer_dashboard.server import Dashboard, DashboardOptions
from trainer_kube_testing import FakeClient

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
COUNT = 5000
GPU = "nvidia.com/gpu"
RUNTIMES = [TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES]


def train_job(number: int, **status: Any) -> dict[str, Any]:
    """One of many."""
    created = f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": f"job-{number}", "namespace": "vision", "uid": str(number), "creationTimestamp": created},
        "spec": {"runtimeRef": {"name": "plain"}},
        "status": {"state": "Running"} | status,
    }


class Cluster(FakeClient):
    """A cluster whose user may do everything but what is `denied`."""

    denied: Collection[str] = ()
    """Verbs."""
    refuses_deletion = False
    """Whether the API server refuses deletions that it has said to be allowed."""

    async def send(self, request: ObjectRequest) -> dict[str, Any] | None:
        """See `Client.send`."""
        if request.resource.kind == "SelfSubjectAccessReview":
            assert isinstance(request.body, dict)
            return {"status": {"allowed": request.body["spec"]["resourceAttributes"]["verb"] not in self.denied}}
        if self.refuses_deletion and request.verb == "delete":
            raise ForbiddenError(403, "a policy keeps them")
        return await super().send(request)


@contextmanager
def serving(
    client: FakeClient,
    past: PastTrainings | None = None,
    options: DashboardOptions | None = None,
) -> Iterator[tuple[Callable[[str], str], BlockingPortal]]:
    """A dashboard of a simulated cluster, of one namespace by default: makes addresses of its views."""
    options = options or DashboardOptions(namespace="vision", cluster="https://gpus.example.com")
    authenticator = LoopbackAuthenticator(client)
    dashboard = Dashboard(client, V2ALPHA1, options, authenticator=authenticator, past=past)
    listening = threading.Event()

    async def started() -> None:
        listening.set()

    async def run() -> None:
        await dashboard.run(started=started)

    with start_blocking_portal() as portal:
        running = portal.start_task_soon(run)
        try:
            assert listening.wait(60)
            yield lambda path: f"{dashboard.address.rstrip('/')}{path}#token={authenticator.token}", portal
        finally:
            running.cancel()


def test_many(page: Page) -> None:
    """Of 5,000 rows those on the screen are in the document; all can be scrolled to, found, and are live."""
    client = FakeClient(*(train_job(number) for number in range(COUNT)), resources=[TRAIN_JOBS])
    with serving(client) as (url, portal):
        page.goto(url("/"))
        expect(page.get_by_role("status")).to_have_text(f"{COUNT} of {COUNT} TrainJobs", timeout=30_000)
        expect(page.get_by_role("link", name=f"job-{COUNT - 1}", exact=True)).to_be_visible()
        assert page.get_by_role("row").count() < 60
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("link", name="job-0", exact=True)).to_be_visible()
        assert page.get_by_role("row").count() < 60
        portal.call(client.add, train_job(0, state="Suspended"))
        expect(page.get_by_role("row", name="job-0 vision")).to_contain_text("Suspended")
        page.get_by_role("searchbox").fill("job-432")
        expect(page.get_by_role("status")).to_have_text(f"11 of {COUNT} TrainJobs")


def failed(number: int) -> dict[str, Any]:
    """One that says why it has failed."""
    condition = {"type": "Failed", "status": "True", "reason": "JobsFailed", "message": "node-1: RuntimeError: no data"}
    return train_job(number, state="Failed", conditions=[condition])


@on_each_screen
def test_selection(page: Page, scheme: str, width: int) -> None:
    """What is selected is deleted after a question that names it, and what was done is said once."""
    show_on(page, scheme, width)
    jobs = [train_job(0), failed(1), train_job(2, state="Complete"), train_job(3, state="Pending")]
    with serving(Cluster(*jobs, resources=[TRAIN_JOBS, *RUNTIMES])) as (url, _):
        page.goto(url("/"))
        expect(page.get_by_text("node-1: RuntimeError: no data")).to_be_visible()
        expect(page.get_by_role("columnheader", name="Owner")).to_have_count(0)
        expect(page.get_by_role("button", name="Waiting 1")).to_be_visible()
        page.get_by_role("button", name="Failed 1").click()
        expect(page.get_by_role("status")).to_have_text("1 of 4 TrainJobs")
        page.reload()
        page.get_by_label("Select job-1").check()
        page.get_by_role("button", name="All 4").click()
        page.get_by_label("Select job-2").check()
        assert_accessible(page)
        page.get_by_role("button", name="Delete ...").click()
        question = page.get_by_role("dialog", name="Delete 2 TrainJobs?")
        expect(question.get_by_role("listitem")).to_have_text(["job-2 vision", "job-1 vision"])
        question.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_label("Notifications").locator(".toast")).to_have_text("Deleted job-2 and job-1")
        expect(page.get_by_role("status")).to_have_text("2 of 2 TrainJobs")
        expect(page.get_by_role("heading", name="TrainJobs")).to_be_focused()
        assert_accessible(page)


@on_each_screen
def test_no_rights(page: Page, scheme: str, width: int) -> None:
    """What a user may not do to what is selected is switched off, with the reason."""
    show_on(page, scheme, width)
    cluster = Cluster(train_job(0), train_job(1), resources=[TRAIN_JOBS, *RUNTIMES])
    cluster.denied = {"delete"}
    with serving(cluster) as (url, _):
        page.goto(url("/"))
        page.get_by_label("Select all").check()
        expect(page.get_by_text("You may not delete TrainJobs in the namespace vision.")).to_be_visible()
        expect(page.get_by_role("button", name="Delete ...")).to_be_disabled()
        expect(page.get_by_role("button", name="Suspend ...")).to_be_enabled()
        assert_accessible(page)


def test_refusals(context: BrowserContext) -> None:
    """Of many refusals there is one notification, with their number."""
    page = context.new_page()  # whose console may have the refusals
    cluster = Cluster(*(train_job(number) for number in range(30)), resources=[TRAIN_JOBS, *RUNTIMES])
    cluster.refuses_deletion = True
    with serving(cluster) as (url, _):
        page.goto(url("/"))
        page.get_by_label("Select all").check()
        page.get_by_role("button", name="Delete ...").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        toast = page.get_by_label("Notifications").locator(".toast")
        expect(toast).to_contain_text("Deleted 0 of 30 TrainJobs. 30 refused: job-29: a policy keeps them")
        expect(toast).to_have_count(1)


def test_focus(page: Page) -> None:
    """What opens over the page is closed by Escape, menus also by a click elsewhere; the focus is where it was."""
    with serving(Cluster(train_job(0), train_job(1), resources=[TRAIN_JOBS, *RUNTIMES])) as (url, _):
        page.goto(url("/"))
        page.get_by_label("Select job-1").check()
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox", name="Search TrainJobs, pages and actions")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_label("Select job-1")).to_be_focused()
        page.keyboard.press("Control+k")
        page.keyboard.press("Control+k")
        expect(page.get_by_label("Select job-1")).to_be_focused()
        question = page.get_by_role("dialog", name="Delete 1 TrainJob?")
        for key in ("Escape", "Enter"):  # cancelled, first by the key, then by its button, which has the focus
            page.get_by_role("button", name="Delete ...").press("Enter")
            expect(question).to_be_visible()
            page.keyboard.press(key)
            expect(question).to_have_count(0)
            expect(page.get_by_role("button", name="Delete ...")).to_be_focused()
        views, name = page.get_by_text("Saved views"), page.get_by_label("Name of the view")
        views.click()
        name.focus()
        page.keyboard.press("Escape")
        expect(name).to_be_hidden()
        expect(page.locator(".views-menu summary")).to_be_focused()
        views.click()
        expect(name).to_be_visible()
        page.get_by_role("status").click()
        expect(name).to_be_hidden()


@pytest.mark.parametrize("width", [721, 941, 1181])
def test_width(page: Page, width: int) -> None:
    """Between a phone and a large screen the list has the columns that there is room for."""
    job = train_job(0, trainerStatus={"progressPercentage": 4, "trainMetrics": {"train/loss": "0.123456"}})
    job["spec"]["trainer"] = {"numNodes": 8, "resourcesPerNode": {"limits": {GPU: 8}}}
    job["metadata"]["labels"] = {"app.kubernetes.io/created-by": "somebody"}
    page.set_viewport_size({"width": width, "height": 800})
    with serving(Cluster(job, resources=[TRAIN_JOBS, *RUNTIMES])) as (url, _):
        page.goto(url("/"))
        expect(page.get_by_role("columnheader", name="Owner")).to_have_count(int(width > 1180))
        assert_accessible(page)


def test_one_state(page: Page) -> None:
    """An address may name a single state, which a chip shows and takes away."""
    jobs = [train_job(0), train_job(1, state="Suspended"), train_job(2, state="Pending")]
    with serving(Cluster(*jobs, resources=[TRAIN_JOBS, *RUNTIMES])) as (url, _):
        page.goto(url("/?state=Suspended"))
        expect(page.get_by_role("status")).to_have_text("1 of 3 TrainJobs")
        page.get_by_role("button", name="Suspended 1").click()
        expect(page.get_by_role("status")).to_have_text("3 of 3 TrainJobs")
        page.get_by_role("button", name="Waiting 2").click()
        expect(page.get_by_role("status")).to_have_text("2 of 3 TrainJobs")


@on_each_screen
def test_palette(page: Page, scheme: str, width: int) -> None:
    """Ctrl-K finds trainings and actions with the keyboard alone; the theme that it chooses is kept."""
    show_on(page, scheme, width)
    with serving(Cluster(train_job(0), train_job(1), resources=[TRAIN_JOBS, *RUNTIMES])) as (url, _):
        page.goto(url("/"))
        expect(page.get_by_text("Live")).to_be_visible()
        page.keyboard.press("Control+k")
        search = page.get_by_role("combobox", name="Search TrainJobs, pages and actions")
        expect(search).to_be_focused()
        expect(page.get_by_role("option", name="Cluster")).to_have_attribute("aria-selected", "false")
        assert_accessible(page)
        page.keyboard.type("theme")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        dark = page.locator("html[data-theme=dark]")
        expect(dark).to_be_attached()
        page.keyboard.press("Control+k")
        page.keyboard.type("job-1")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="job-1 vision")).to_be_visible()
        page.reload()
        expect(dark).to_be_attached()


def test_empty(page: Page) -> None:
    """Without a training the list says how to start one."""
    with serving(Cluster(resources=[TRAIN_JOBS, *RUNTIMES])) as (url, _):
        page.goto(url("/"))
        expect(page.get_by_role("heading", name="Start the first training")).to_be_visible()
        expect(page.get_by_role("button", name="Copy the command")).to_be_visible()
        assert_accessible(page)


def gpu_node(number: int) -> dict[str, Any]:
    """A node with eight GPUs, the fourth of which is cordoned."""
    product = "NVIDIA-H100-80GB-HBM3" if number < 3 else "NVIDIA-A100-SXM4-80GB"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"gpu-{number}", "labels": {"nvidia.com/gpu.product": product}},
        "spec": {"unschedulable": number == 3},
        "status": {
            "allocatable": {"cpu": "96", "memory": "1Ti", GPU: "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def gpu_pod(number: int, gpus: int) -> dict[str, Any]:
    """A pod on a node."""
    requests = {"cpu": "32", "memory": "256Gi", GPU: gpus}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": "vision"},
        "spec": {"nodeName": f"gpu-{number}", "containers": [{"name": "node", "resources": {"requests": requests}}]},
        "status": {"phase": "Running"},
    }


def claimable() -> list[dict[str, Any]]:
    """Four GPUs of a node that pods get by claims, and a claim that has one."""
    product = {"productName": {"string": "NVIDIA GB200"}}
    devices = [{"name": f"gpu-{number}", "attributes": product} for number in range(4)]
    pool = {"name": "gpu-0", "generation": 1, "resourceSliceCount": 1}
    result = {"driver": "gpu.nvidia.com", "pool": "gpu-0", "device": "gpu-2"}
    return [
        {
            "apiVersion": RESOURCE_SLICES.api_version,
            "kind": RESOURCE_SLICES.kind,
            "metadata": {"name": "gpu-0-gpu.nvidia.com"},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": "gpu-0", "pool": pool, "devices": devices},
        },
        {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": {"name": "claim", "namespace": "vision"},
            "status": {"allocation": {"devices": {"results": [result]}}},
        },
    ]


def gpu_runtime() -> dict[str, Any]:
    """A runtime with eight GPUs on each of two nodes."""
    container = {"name": "node", "image": "pytorch/pytorch:2.9", "resources": {"limits": {GPU: 8}}}
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    jobs = [{"name": "node", "template": template}]
    return {
        "apiVersion": CLUSTER_TRAINING_RUNTIMES.api_version,
        "kind": CLUSTER_TRAINING_RUNTIMES.kind,
        "metadata": {
            "name": "torch-distributed",
            "labels": {"trainer.kubeflow.org/framework": "torch"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": jobs}}},
    }


def workload(name: str, priority: int, message: str) -> dict[str, Any]:
    """A Workload that waits."""
    container = {"name": "node", "resources": {"requests": {GPU: 8}}}
    return {
        "apiVersion": WORKLOADS[0].api_version,
        "kind": WORKLOADS[0].kind,
        "metadata": {
            "name": f"trainjob-{name}",
            "namespace": "vision",
            "uid": f"workload-{name}",
            "labels": {"kueue.x-k8s.io/job-uid": "0"} if name == "job-0" else {},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"kind": "TrainJob", "name": name, "controller": True}],
        },
        "spec": {
            "queueName": "research",
            "priority": priority,
            "podSets": [{"count": 2, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "message": message}]},
    }


def test_gpus(page: Page) -> None:
    """GPUs are shown by product with what is free of them, and what waits for them, by runtime and by queue."""
    names = ("job-0", "job-1", "<script>alert(1)</script>")
    jobs = [train_job(number, state="Suspended" if number < 2 else "Running") for number in range(4)]
    for job in jobs:
        job["spec"] = {"runtimeRef": {"name": "torch-distributed"}, "suspend": job["status"]["state"] == "Suspended"}
    message = "insufficient unused quota for nvidia.com/gpu in flavor h100, 16 more needed"
    jobs[0]["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    client = Cluster(
        *jobs,
        *map(gpu_node, range(6)),
        *(gpu_pod(number, gpus) for number, gpus in enumerate((8, 8, 4, 2, 6))),
        gpu_runtime(),
        *claimable(),
        *(workload(name, 10 - number, message) for number, name in enumerate(names)),
        resources=[
            TRAIN_JOBS,
            TRAINING_RUNTIMES,
            CLUSTER_TRAINING_RUNTIMES,
            WORKLOADS[0],
            RESOURCE_SLICES,
            RESOURCE_CLAIMS,
        ],
    )
    with serving(client) as (url, portal):
        page.goto(url("/"))
        metric = page.get_by_role("row", name="job-3 vision").locator(".sparkline")
        for step in range(1, 13):
            status = {
                "trainMetrics": {"loss": f"{3 / (1 + step / 4):.4g}"},
                "lastUpdatedTime": f"2026-01-01T00:00:{step:02}Z",
            }
            portal.call(client.add, jobs[3] | {"status": {"state": "Running", "trainerStatus": status}})
            expect(metric).to_contain_text(f"{3 / (1 + step / 4):.4g}")
        expect(metric.locator("polyline")).to_be_attached()
        page.goto(url("/cluster"))
        resources = page.get_by_role("list", name="Resources").get_by_role("listitem")
        expect(resources.filter(has_text="H100 80GB HBM3")).to_contain_text("20 requested")
        expect(resources.filter(has_text="gpu.nvidia.com on 1 node")).to_contain_text("3 free of 4")
        waiting = page.get_by_role("table", name="Waiting")
        expect(waiting.get_by_role("row")).to_have_count(4)
        expect(waiting.get_by_role("row").nth(1)).to_contain_text(message)
        expect(waiting.get_by_role("row").nth(1)).to_contain_text("place 1")
        expect(page.get_by_text(names[2])).to_be_visible()
        expect(page.get_by_text("3 wait, for 48 GPUs together")).to_be_visible()
        page.get_by_role("region", name="Waiting TrainJobs").get_by_role("link", name="job-0").click()
        answer = page.get_by_role("region", name="Explanation")
        expect(answer).to_contain_text(f"waits in Kueue's queue research; {message}")
        picture(page, "explanation")
        page.get_by_role("link", name="Runtimes").click()
        uses = page.get_by_role("link", name="4, 2 active")
        expect(uses).to_be_visible()
        uses.click()
        expect(page.get_by_role("status")).to_have_text("4 of 4 TrainJobs")
        expect(page.get_by_role("row", name="job-3 vision").locator(".gpus")).to_have_text("16")
