"""The story of a sweep on the page: from the list to its best trial, and to training that once more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import BlockingPortal

from e2e.cluster import Cluster
from e2e.dashboard.conftest import Dashboard, assert_accessible, needs_axe, picture, show_on, start
from e2e.dashboard.test_many import serving
from e2e.dashboard.test_new import written
from e2e.kubectl import BIN
from e2e.processes import Process
from packages.dashboard.tests.conftest import UserClient
from packages.dashboard.tests.sweeps import cluster as serving_sweeps
from packages.dashboard.tests.sweeps import condition, many, record, searched, sweep
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.objects import Object
from trainer_sweeps.api.definitions import definition

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

COUNT = 12
BEST = 3
FOREIGN = "kueue.x-k8s.io/multikueue"
"""Manager of TrainJobs that ours leaves alone: their status is that of the test."""
VARIABLES = ["KUBEFLOW_TRAINER_OPT_LR", "KUBEFLOW_TRAINER_OPT_LAYERS", "KUBEFLOW_TRAINER_OPT_OPTIMIZER"]


@pytest.fixture(scope="module")
def sweeps(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace with a sweep that has ended, and its trials."""
    own = replace(session_cluster, namespace="sweeps")
    session_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own.namespace}})
    crd = f"{OPTIMIZATION_JOBS.plural}.{OPTIMIZATION_JOBS.group}"
    is_own = session_cluster.get("crd", crd) is None
    if is_own:
        session_cluster.apply(definition("v2alpha1"))
    session_cluster.kubectl("wait", "--for=condition=Established", f"crd/{crd}", "--timeout=60s")
    of, jobs = searched(count=COUNT, namespace=own.namespace)
    # Suspended, until its status says that it has ended: no controller begins trials of its own.
    apply(own, of | {"spec": of["spec"] | {"suspend": True}})
    write_status(own, "optimizationjob", of)
    stored = own.get("optimizationjob", "digits")
    assert stored is not None
    for job in jobs:
        job["metadata"]["ownerReferences"][0]["uid"] = stored["metadata"]["uid"]
        job["spec"]["managedBy"] = FOREIGN
    apply(own, *jobs)
    for job in jobs:
        write_status(own, "trainjob", job)
    yield own
    session_cluster.kubectl("delete", "namespace", own.namespace, "--timeout=60s")
    if is_own:
        session_cluster.kubectl("delete", "crd", crd, "--timeout=60s")


def apply(own: Cluster, *objects: Object) -> None:
    """Apply objects without what the server writes; as JSON, since 1e-5 is a text here, and no number."""
    items = [{name: value for name, value in each.items() if name != "status"} for each in objects]
    for each in items:
        each["metadata"] = {
            name: value for name, value in each["metadata"].items() if name not in {"uid", "creationTimestamp"}
        }
    own.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def write_status(own: Cluster, kind: str, obj: Object) -> None:
    """Write the status as its controller would."""
    patch = json.dumps({"status": obj["status"]})
    own.kubectl("patch", kind, obj["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)


@pytest.fixture(scope="module")
def dashboard(sweeps: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard that is started when the cluster serves OptimizationJobs."""
    command = [str(BIN / "trainer"), "dashboard", "--no-browser", "--kubeconfig", str(sweeps.kubeconfig)]
    process = Process(command, tmp_path_factory.mktemp("sweeps") / "dashboard.log")
    yield start(process)
    process.stop()


def rows(page: Page) -> Locator:
    """The trials in their table."""
    return page.get_by_role("region", name="Trials", exact=True).locator("tbody tr")


def test_story(page: Page, dashboard: Dashboard, sweeps: Cluster) -> None:
    """A user finds a sweep, sorts and filters its trials, looks at the best one, and trains it again."""
    page.goto(dashboard.url())
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Sweeps").click()
    row = page.get_by_role("row", name="digits")
    expect(row).to_contain_text(f"{COUNT} of {COUNT}")
    picture(page, "sweeps")
    row.get_by_role("link", name="digits").click()
    expect(page.get_by_role("heading", name="digits sweeps")).to_be_visible()
    best = page.get_by_role("region", name="Best trial")
    expect(best).to_contain_text(f"Trial {BEST}")
    expect(page.get_by_text("trainer get sweep digits -n sweeps")).to_be_visible()
    expect(page.locator(".parallel .line")).to_have_count(COUNT)
    expect(page.locator(".mark-of-trial")).to_have_count(COUNT)
    expect(page.get_by_role("figure").locator("canvas")).to_be_attached()
    expect(page.locator(".importance li")).to_have_count(3)
    picture(page, "sweep")
    expect(rows(page)).to_have_count(COUNT)
    page.get_by_role("button", name="val_loss", exact=True).click()
    expect(rows(page).first).to_contain_text(f"Trial {BEST}")
    expect(rows(page).first).to_contain_text("best")
    page.get_by_role("button", name="lr", exact=True).click()
    expect(rows(page).first).to_contain_text("1.731e-5")
    page.get_by_role("button", name="Pruned 2").click()
    expect(rows(page)).to_have_count(2)
    expect(rows(page).first).to_contain_text("worse than the median")
    page.reload()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name=f"All {COUNT}").click()
    page.get_by_role("slider", name="Keep a part of optimizer").press("ArrowUp")
    expect(page.get_by_text("optimizer adamw")).to_be_visible()
    kept = rows(page).count()
    assert 0 < kept < COUNT
    expect(page.locator(".parallel .line.out")).to_have_count(COUNT - kept)
    expect(page.get_by_role("status").filter(has_text="of 12")).to_have_text(f"{kept} of {COUNT} trials")
    page.get_by_role("slider", name="Keep a part of optimizer").press("Escape")
    expect(rows(page)).to_have_count(COUNT)
    compare = page.get_by_role("link", name="Compare the best 5")
    expect(compare).to_be_visible()
    page.get_by_role("checkbox", name="Choose Trial 1", exact=True).check()
    page.get_by_role("checkbox", name="Choose Trial 2", exact=True).check()
    page.get_by_role("link", name="Compare 2").click()
    expect(page.get_by_role("heading", name="Compare TrainJobs 2")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Open the best trial").click()
    expect(page.get_by_role("heading", name=f"digits-trial-{BEST} sweeps")).to_be_visible()
    membership = page.get_by_role("region", name="Sweep")
    expect(membership).to_contain_text(f"Trial {BEST} of sweep digits")
    membership.get_by_role("link", name="digits").click()
    page.get_by_role("link", name="Train the best again").click()
    expect(page.get_by_role("heading", name="New TrainJob")).to_be_visible()
    expect(page.get_by_text(f"Trial {BEST} of the sweep digits")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name", exact=True).first).to_have_value("digits-best")
    text = written(page)
    assert all(variable in text for variable in VARIABLES)
    assert "optimization-" not in text
    assert "curve" not in text
    picture(page, "sweep-again")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="digits-best sweeps")).to_be_visible()
    created = sweeps.get("trainjob", "digits-best")
    assert created is not None
    assert [each["name"] for each in created["spec"]["trainer"]["env"]] == VARIABLES
    assert created["metadata"].get("labels", {}) == {}
    page.goto(dashboard.url("/sweeps/sweeps/digits/yaml"))
    expect(page.get_by_label("YAML of the sweep")).to_contain_text("kind: OptimizationJob")
    page.get_by_role("button", name="Delete ...").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("This sweep was deleted.")).to_be_visible()


@pytest.fixture(scope="module")
def simulated() -> Iterator[tuple[Callable[[str], str], BlockingPortal, UserClient]]:
    """A dashboard of sweeps of all sizes."""
    client = serving_sweeps()
    long = "a-sweep-with-a-name-as-long-as-the-names-of-sweeps-may-ever-be"
    sizes: list[tuple[str, int, dict[str, Any]]] = [
        ("mixed", 20, {"running": 3, "total": 24}),
        ("huge", 100, {"parameters": many()}),
        ("one", 1, {}),
        (long, 9, {"metric": "validation/top_5_accuracy_error_of_all_classes"}),
    ]
    for name, count, more in sizes:
        of, jobs = searched(name, count, namespace="vision", **more)
        for each in (of, *jobs):
            client.add(each)
    blocked = condition("Created", "False", message="the algorithm gp needs PyTorch")
    client.add(sweep("blocked", namespace="vision", state="Blocked", conditions=[blocked]))
    with serving(client) as (address, portal):
        yield address, portal, client


# All is in the first one. The others differ by how much they have, and not by their colours.
@needs_axe
@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [
        *(("mixed", scheme, width) for scheme in ("light", "dark") for width in (1280, 360)),
        ("huge", "light", 1280),
        ("huge", "dark", 360),
        ("one", "light", 360),
        ("blocked", "dark", 360),
    ],
)
def test_accessibility(page: Page, simulated: tuple[Any, ...], name: str, scheme: str, width: int) -> None:
    """axe finds nothing against WCAG AA, and nothing is wider than the screen, however much there is."""
    show_on(page, scheme, width)
    page.goto(simulated[0](f"/sweeps/vision/{name}"))
    expect(page.get_by_role("heading", name="Curves")).to_be_visible()
    expect(page.get_by_role("region", name="Best trial")).to_be_visible()
    assert_accessible(page)


@needs_axe
@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_accessible_list(page: Page, simulated: tuple[Any, ...], scheme: str, width: int) -> None:
    """The list has long names and few trials."""
    show_on(page, scheme, width)
    page.goto(simulated[0]("/sweeps"))
    expect(page.get_by_role("status")).to_have_text("5 of 5 sweeps")
    assert_accessible(page)


def test_many_parameters(page: Page, simulated: tuple[Any, ...]) -> None:
    """Of many parameters those that matter most have axes at first, and all of them if wanted."""
    page.goto(simulated[0]("/sweeps/vision/huge"))
    expect(page.locator(".parallel .axis")).to_have_count(12)
    page.get_by_role("checkbox", name="All 30 parameters").check()
    expect(page.locator(".parallel .axis")).to_have_count(31)
    expect(rows(page)).to_have_count(100)


def test_live(page: Page, simulated: tuple[Any, ...]) -> None:
    """What trials report is shown as it comes, and nothing below moves; the sweep is suspended, resumed, and gone."""
    address, portal, client = simulated
    page.goto(address("/sweeps/vision/mixed"))
    running = rows(page).filter(has_text="Running").first
    expect(running).to_contain_text("Trial 18")
    title = page.get_by_role("heading", name="Trials")
    before = title.bounding_box()
    of, _ = searched("mixed", 20, namespace="vision", running=3, total=24)
    values = ["0.003", "3", "sgd"]
    of["status"]["trials"].append(record(18, values, value="0.0123", step=30))
    of["status"]["result"] = {"trainJobName": "mixed-trial-18", "value": "0.0123"}
    portal.call(client.add, of)
    expect(page.get_by_role("region", name="Best trial")).to_contain_text("0.0123")
    expect(rows(page).filter(has_text="best")).to_contain_text("Trial 18")
    assert title.bounding_box() == before
    page.get_by_role("button", name="Suspend").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Suspend")).to_be_enabled()
    portal.call(client.remove, OPTIMIZATION_JOBS, "mixed", "vision")
    expect(page.get_by_role("alert")).to_have_text("This sweep was deleted. What is shown was its last state.")
    portal.call(client.add, searched("mixed", 20, namespace="vision", running=3, total=24)[0])


def test_without_the_kind(page: Page) -> None:
    """Where the cluster has no OptimizationJobs the page says nothing of them."""
    with serving(UserClient()) as (address, _):
        page.goto(address("/"))
        views = page.get_by_role("navigation", name="Views")
        expect(views.get_by_role("link", name="Runtimes")).to_be_visible()
        expect(views.get_by_role("link", name="Sweeps")).to_have_count(0)
        page.goto(address("/sweeps"))
        expect(page.get_by_text("no OptimizationJobs that you may see")).to_be_visible()
