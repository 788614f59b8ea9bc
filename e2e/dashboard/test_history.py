"""The history: a training that has ended and was deleted is found, looked at, and compared with a live one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import Cluster
from e2e.dashboard.conftest import Dashboard, assert_accessible, on_each_screen, picture, show_on, start
from e2e.dashboard.test_many import Cluster as SimulatedCluster
from e2e.dashboard.test_many import gpu_runtime, serving, train_job
from e2e.kubectl import BIN
from e2e.processes import Process
from e2e.progress_training import training
from e2e.waiting import until
from packages.dashboard.tests.past_trainings import (
    BEGIN,
    KUBE_SYSTEM,
    past_training,
    save,
    save_documents,
    save_event,
    save_log,
    save_samples,
)
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer_dashboard.history.database import Database
from trainer_dashboard.past.past_trainings import PAGE, PastTrainings

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
TRAINING = """
for step in range(1, 101):
    say(currentStep=step, totalSteps=100, progressPercentage=step, trainMetrics={"loss": round(RATE / step, 5)})
    if step % 10 == 0:
        write(f"step {step} of 100\\n")
"""


@pytest.fixture(scope="module")
def dashboard(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard that records what it shows."""
    directory = tmp_path_factory.mktemp("history")
    command = [str(BIN / "trainer"), "dashboard", "--no-browser", "--kubeconfig", str(session_cluster.kubeconfig)]
    command += ["--record", "--database", f"sqlite:///{directory}/history.db"]
    process = Process(command, directory / "dashboard.log")
    yield start(process)
    process.stop()


@pytest.fixture(scope="module")
def archive(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace of its own."""
    with session_cluster.in_namespace("archive") as own:
        yield own


def shows_anew(page: Page, wanted: Locator) -> bool:
    """Whether a page shows something once it has been loaded again, and has got its answers."""
    page.reload()
    try:
        wanted.wait_for(timeout=3_000)
    except sync_api.TimeoutError:
        return False
    return True


def test_story(page: Page, dashboard: Dashboard, archive: Cluster) -> None:
    """What a training was is there when it is gone: how it ended, its curves and last lines, beside a live one."""
    hostile = f"write({HOSTILE!r} + '\\n')"
    archive.apply(training("resnet", TRAINING.replace("RATE", "2") + hostile, nodes=2))
    assert archive.wait_for_state("resnet", "Complete", "Failed") == "Complete"
    page.goto(dashboard.url("/history?namespace=archive"))
    link = page.get_by_role("link", name="resnet", exact=True)
    until(lambda: shows_anew(page, link), "the training is in the history")
    link.click()
    expect(page.get_by_role("link", name="The TrainJob in the cluster")).to_be_visible()
    page.get_by_role("link", name="Logs").click()
    until(lambda: shows_anew(page, page.get_by_role("log")), "the last lines are kept")
    page.get_by_role("link", name="Overview").click()
    figure = page.get_by_role("figure").filter(has_text="loss")
    until(lambda: shows_anew(page, figure), "the curve is kept")
    archive.kubectl("delete", "trainjob", "resnet")
    archive.apply(training("resnet", TRAINING.replace("RATE", "3") + "live_on()", nodes=2))
    archive.wait_for_state("resnet", "Running")

    page.goto(dashboard.url())
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("link", name="History")).to_have_attribute("aria-current", "page")
    row = page.get_by_role("row", name="resnet archive")
    expect(row).to_contain_text("Complete")
    until(lambda: shows_anew(page, row.get_by_text("deleted")), "it is known to be gone")
    expect(row).to_contain_text("loss 0.02")
    link.click()
    expect(page.get_by_role("heading", name="resnet archive")).to_be_focused()
    expect(page.get_by_text("This TrainJob is gone since")).to_be_visible()
    expect(figure).to_contain_text("min 0.02, max 2")
    expect(figure.locator("canvas")).to_be_attached()
    expect(page.locator("ol.timeline")).to_contain_text("Complete")
    picture(page, "past")
    page.get_by_role("link", name="Logs").click()
    log = page.get_by_role("log")
    expect(log).to_contain_text("step 100 of 100")
    expect(log.locator(".text").filter(has_text=HOSTILE)).to_have_count(2)
    page.get_by_label("Only lines with").fill("step 90")
    expect(log.locator(".line")).to_have_count(2)
    page.get_by_role("combobox", name="Nodes are").select_option("Side by side")
    page.reload()
    expect(page.get_by_role("log")).to_have_count(2)
    page.get_by_role("link", name="Objects").click()
    expect(page.get_by_label("YAML of TrainJob resnet")).to_contain_text("runtimeRef:")
    expect(page.get_by_label("YAML of JobSet resnet")).to_contain_text("replicatedJobs:")
    expect(page.get_by_label("YAML of ClusterTrainingRuntime plain")).to_contain_text("kind: ClusterTrainingRuntime")
    assert page.locator("img, main script").count() == 0

    page.goto(dashboard.url("/jobs/archive/resnet"))
    runs = page.get_by_role("region", name="Earlier runs")
    expect(runs.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="Compare with the earlier run").click()
    both = page.get_by_role("region", name="Parameters and results", exact=True).locator("tbody").get_by_role("row")
    expect(both.nth(0)).to_contain_text("max 3")
    expect(both.nth(1)).to_contain_text("ended")
    expect(both.nth(1)).to_contain_text("max 2")
    expect(page.get_by_role("figure").filter(has_text="loss").locator("canvas")).to_be_attached()
    page.get_by_role("button", name="Remove resnet, ended").click()
    expect(both).to_have_count(1)
    page.get_by_role("button", name="Choose trainings ...").click()
    page.get_by_role("button", name="Of the history").click()
    page.get_by_role("checkbox", name="resnet archive").check()
    page.get_by_role("button", name="Done").click()
    expect(both).to_have_count(2)
    page.reload()
    expect(both).to_have_count(2)


def test_deletion_leads_to_the_history(page: Page, dashboard: Dashboard, archive: Cluster) -> None:
    """The page of a TrainJob that goes, and that of one that is not there, lead to what is kept."""
    archive.apply(training("short-lived", "live_on()"))
    archive.wait_for_state("short-lived", "Running")
    page.goto(dashboard.url("/jobs/archive/short-lived"))
    expect(page.locator(".title .state")).to_have_text("Running")
    archive.kubectl("delete", "trainjob", "short-lived")
    page.get_by_role("link", name="What the history has kept of it").click()
    until(lambda: shows_anew(page, page.get_by_text("is gone since")), "it is recorded")
    expect(page.locator(".title .ending")).to_have_text("Stoppeddeleted")
    page.goto(dashboard.url("/jobs/archive/short-lived"))
    page.get_by_role("link", name="Look for short-lived in the history").click()
    expect(page.get_by_role("link", name="short-lived", exact=True)).to_be_visible()


COUNT = 3 * PAGE + 50


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A year of trainings, some of which have hostile texts."""
    opened = Database(f"sqlite:///{tmp_path}/history.db")
    opened.migrate()
    yield opened
    opened.close()


def of_team(uid: str, ended: float, **columns: Any) -> dict[str, Any]:
    """A training as teams leave them."""
    fixed = {"namespace": "vision", "nodes": 2, "creator": "jane", "image": "example.com/resnet:1.4"}
    fixed |= {"runtime": "torch-distributed", "runtime_version": "generation 3", "reason": "AllJobsCompleted"}
    return past_training(uid, ended) | fixed | {"metrics": '[["loss", "0.2", false]]'} | columns


def fill(database: Database) -> None:
    """Write them."""
    times = [(number, BEGIN + 3600.0 * number - 1500 - 7 * (number % 300)) for number in range(COUNT)]
    rows = [
        of_team(f"u-{number:04}", 3600.0 * number, name=f"resnet-{number}", started=started)
        for number, started in times
    ]
    rows[-5] |= {"state": "Failed", "reason": "Failed", "message": "no data in /data", "deleted": BEGIN + 3600 * COUNT}
    for row in rows[-30:-6:3]:
        row |= {"deleted": BEGIN + 3600 * COUNT}
    rows[-1] |= {"state": "Failed", "reason": "Failed", "message": f"{HOSTILE} exit code 3", "creator": HOSTILE}
    rows[-2] |= {"state": "Running", "ended": None, "deleted": BEGIN + 3600 * COUNT + 60, "progress": 40}
    rows[-3] |= {"deleted": BEGIN + 3600 * COUNT, "runtime": HOSTILE, "metrics": f'[[{HOSTILE!r}, "0.2", false]]'}
    rows[-3]["metrics"] = rows[-3]["metrics"].replace("'", '"')
    save(database, *rows)
    uid = rows[-1]["uid"]
    save_samples(database, uid, [3 / (1 + step / 30) for step in range(300)])
    for node in ("node-0", "node-1"):
        save_log(database, uid, node, "epoch 1", HOSTILE, "\x1b[31mred\x1b[0m", "no data in /data")
    save_event(database, uid, "BackOff", HOSTILE)
    conditions = [{"type": "Failed", "status": "True", "reason": "Failed", "message": HOSTILE}]
    conditions[0]["lastTransitionTime"] = "2026-01-15T00:00:00Z"
    job = train_job(COUNT - 1, state="Failed", conditions=conditions)
    save_documents(database, uid, trainjob=job, runtime=gpu_runtime() | {"note": HOSTILE})


@pytest.fixture
def url(database: Database) -> Iterator[Callable[[str], str]]:
    """Addresses of a dashboard of a simulated cluster with this history."""
    fill(database)
    live = train_job(1, state="Running")
    live["metadata"] |= {"name": f"resnet-{COUNT - 1}", "creationTimestamp": "2026-03-01T00:00:00Z"}
    resources = [TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES]
    client = SimulatedCluster(KUBE_SYSTEM, live, resources=resources)
    with serving(client, past=PastTrainings(database, client, "")) as (address, _):
        yield address


def test_many(page: Page, url: Callable[[str], str]) -> None:
    """Of all trainings those on the screen are in the document, and others are read as somebody scrolls to them."""
    page.goto(url("/history"))
    expect(page.get_by_role("status")).to_have_text(f"{PAGE} and more trainings")
    expect(page.get_by_text("Times are those of")).to_be_visible()
    first = page.get_by_role("row").nth(1)
    expect(first).to_contain_text(f"resnet-{COUNT - 2}")
    expect(first).to_contain_text("Stopped")
    expect(first).to_contain_text("deleted")
    for count in (2 * PAGE, 3 * PAGE):
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("status")).to_have_text(f"{count} and more trainings")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    expect(page.get_by_role("status")).to_have_text(f"{COUNT} trainings")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    expect(page.get_by_role("link", name="resnet-0", exact=True)).to_be_visible()
    assert page.get_by_role("row").count() < 60
    page.keyboard.press("/")
    page.keyboard.type(f"resnet-{COUNT - 1}")
    expect(page.get_by_role("status")).to_have_text("1 training")
    assert f"q=resnet-{COUNT - 1}" in page.url
    page.reload()
    expect(page.get_by_role("status")).to_have_text("1 training")
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Escape")
    page.get_by_label("Only deleted ones").check()
    expect(page.get_by_role("status")).to_have_text("11 trainings")
    page.get_by_role("combobox", name="State").select_option("Running")
    expect(page.get_by_role("status")).to_have_text("1 training")
    page.get_by_role("combobox", name="State").select_option("Suspended")
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("status")).to_have_text(f"{PAGE} and more trainings")
    assert page.locator("img, main script").count() == 0
    page.get_by_role("searchbox").fill("torch jane")
    expect(page.get_by_role("status")).to_have_text(f"{PAGE} and more trainings")
    expect(page.get_by_role("row").nth(1)).to_contain_text("Stopped")
    expect(page.get_by_role("row").nth(2)).to_contain_text(f"resnet-{COUNT - 4}")
    picture(page, "history")


@on_each_screen
def test_accessibility(context: BrowserContext, page: Page, url: Callable[[str], str], scheme: str, width: int) -> None:
    """axe finds nothing against WCAG AA, nothing is wider than the screen, and hostile texts are only texts."""
    show_on(page, scheme, width)
    one = f"/history/vision/resnet-{COUNT - 1}/u-{COUNT - 1:04}"
    for path, shown in {
        "/history": "Times are those of",
        one: "max 3",
        f"{one}/logs": "no data in /data",
        f"{one}/objects": "runtimeRef:",
        f"/jobs/vision/resnet-{COUNT - 1}": "Compare with the earlier run",
        f"/compare?past=vision/resnet-{COUNT - 1}/u-{COUNT - 1:04}": "max 3",
    }.items():
        page.goto(url(path))
        expect(page.get_by_text(shown).first).to_be_visible()
        assert page.locator("img, main script").count() == 0, path
        assert_accessible(page)
        states = page.locator(".past .body .state")
        assert states.evaluate_all("(all) => all.every((each) => each.scrollWidth <= each.clientWidth)"), path
