"""The story of a user: from the list to the charts, the logs, and to suspending a training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import Cluster
from e2e.dashboard.conftest import Dashboard, assert_accessible, on_each_screen, picture, show_on, start
from e2e.kubectl import BIN
from e2e.processes import Process
from e2e.progress_training import training
from e2e.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
TRAINING = """
import math
for step in range(1, 201):
    metrics = {"loss": round(2.4 / (1 + step / 40) + 0.05 * math.sin(step), 5), "learning_rate": 1e-4}
    evaluated = {"evalMetrics": {"accuracy": round(1 - 1 / (1 + step / 30), 4)}} if step % 20 == 0 else {}
    say(progressPercentage=step // 4, currentStep=step, totalSteps=800, currentEpoch=1 + step // 200, totalEpochs=4,
        estimatedRemainingSeconds=600, trainMetrics=metrics, **evaluated)
    if step % 10 == 0:
        write(f"epoch {1 + step // 200}, step {step} of 800, loss {metrics['loss']:.4f}\\n")
live_on()
"""
HOSTILE_TRAINING = f"""
say(currentStep=1, trainMetrics={{{HOSTILE!r}: 1}})
write({HOSTILE!r} + "\\n" + "\\x1b[31mred\\x1b[0m\\n" + "10 %\\r20 %\\n")
"""
LONG_LOG = """
for block in range(100):
    write("".join(f"line {block * 1000 + number:05} {'x' * 90}\\n" for number in range(1000)))
write("the last line\\n")
"""


@pytest.fixture(scope="module")
def jobs(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace with trainings, one of which runs and reports."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vision"}}
    own = replace(session_cluster, namespace="vision")
    session_cluster.apply(namespace)
    own.apply(
        training("resnet", TRAINING, nodes=2),
        training("resnet-broken", "write('no data in /data\\n'); sys.exit(3)"),
        training("resnet-later", "live_on()", suspend=True),
        training("resnet-wide", TRAINING.replace("2.4", "2.9")),
        training("hostile", HOSTILE_TRAINING),
        training("hostile-failure", f"write({HOSTILE!r} + '\\n'); sys.exit(3)"),
        training("long-log", LONG_LOG),
    )
    own.wait_for_state("resnet", "Running")
    own.wait_for_state("resnet-broken", "Failed")
    own.wait_for_state("hostile-failure", "Failed")
    for name in ("hostile", "long-log"):
        assert own.wait_for_state(name, "Complete", "Failed", timeout=120) == "Complete"
    until(lambda: (own.get("trainjob", "resnet") or {})["status"].get("trainerStatus"), "progress is reported")
    yield own
    session_cluster.kubectl("delete", "namespace", "vision", "--timeout=60s")


def test_story(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """A user finds a training, looks at its curves and logs, and suspends and resumes it."""
    page.goto(session_dashboard.url())
    expect(page.get_by_role("row")).to_have_count(8)
    expect(page.get_by_role("progressbar", name="Progress of resnet", exact=True)).to_be_visible()
    picture(page, "list")
    page.keyboard.press("/")
    page.keyboard.type("broken")
    expect(page.get_by_role("status")).to_have_text("1 of 7 TrainJobs")
    assert "q=broken" in page.url
    assert session_dashboard.token not in page.url
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Running 2").click()
    page.reload()
    expect(page.get_by_role("status")).to_have_text("2 of 7 TrainJobs")
    page.get_by_role("link", name="resnet", exact=True).click()
    expect(page.get_by_role("heading", name="resnet vision")).to_be_visible()
    figure = page.get_by_role("figure").filter(has_text="loss")
    expect(figure.locator("canvas")).to_be_attached()
    expect(figure).to_contain_text("max 2.")
    expect(page.get_by_role("row", name="node-1")).to_contain_text("Running")
    expect(page.get_by_role("region", name="What runs")).to_contain_text("python")
    expect(page.get_by_role("list", name="Phases")).to_contain_text("Running")
    picture(page, "job")
    page.get_by_text("Conditions", exact=True).click()
    expect(page.get_by_text("Allowed to run")).to_be_visible()
    page.get_by_role("searchbox", name="Search metrics").fill("rate")
    expect(page.get_by_role("figure")).to_have_count(1)
    page.get_by_role("searchbox", name="Search metrics").fill("")
    rate = page.get_by_role("figure").filter(has_text="learning_rate")
    rate.hover()
    rate.get_by_role("button", name="Pin learning_rate").click()
    expect(page.get_by_role("figure").first).to_contain_text("learning_rate")
    assert "pin=learning_rate" in page.url
    for name, ending in (("CSV", "csv"), ("PNG", "png")):
        with page.expect_download() as download:
            rate.get_by_role("button", name=f"Download learning_rate as {name}").click()
        assert download.value.suggested_filename == f"learning_rate.{ending}"
    low = rate.locator("canvas").bounding_box()
    assert low is not None
    rate.get_by_role("button", name="Full screen of learning_rate").click()
    page.wait_for_selector("figure:fullscreen")
    until(lambda: (rate.locator("canvas").bounding_box() or low)["height"] > 2 * low["height"], "the chart grows")
    rate.get_by_role("button", name="Full screen of learning_rate").click()
    expect(page.locator("figure:fullscreen")).to_have_count(0)
    rate.get_by_role("button", name="Pin learning_rate").click()
    expect(page.get_by_role("figure").first).to_contain_text("loss")
    page.get_by_label("Logarithmic").check()
    page.get_by_role("combobox", name="Smoothing").select_option("0.9")
    assert "y=log" in page.url
    assert "smooth=0.9" in page.url
    page.reload()
    expect(page.get_by_label("Logarithmic")).to_be_checked()
    expect(figure.locator("canvas")).to_be_attached()
    page.get_by_role("link", name="Logs").click()
    log = page.get_by_role("log")
    expect(log).to_contain_text("step 200 of 800")
    picture(page, "logs")
    page.get_by_label("Only lines with").fill("step 190")
    expect(log.locator(".line")).to_have_count(2)
    page.get_by_role("checkbox", name="Filter").uncheck()
    expect(log.locator("mark")).to_have_count(2)
    page.get_by_role("button", name="Next match").click()
    expect(page.get_by_text("1 of 2", exact=True)).to_be_visible()
    page.get_by_role("button", name="Previous match").click()
    expect(log.locator(".line.current")).to_contain_text("step 190")
    page.get_by_role("checkbox", name="Times").check()
    expect(log.locator("time").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    saved = Path(download.value.path()).read_text()
    assert "step 190" in saved
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_label("Notifications")).to_contain_text("Copied the lines")
    assert page.evaluate("navigator.clipboard.readText()") == saved
    page.get_by_role("checkbox", name="Times").uncheck()
    page.get_by_role("checkbox", name="Filter").check()
    page.get_by_role("combobox", name="Node", exact=True).select_option("node-1")
    expect(log.locator(".line")).to_have_count(1)
    assert "q=step+190" in page.url
    page.get_by_role("combobox", name="Node", exact=True).select_option("")
    page.get_by_role("combobox", name="Nodes are").select_option("Side by side")
    page.reload()
    expect(page.get_by_role("log")).to_have_count(2)
    expect(page.get_by_role("log", name="Log lines of node-1").locator(".line")).to_have_count(1)
    page.get_by_role("link", name="YAML").click()
    expect(page.get_by_text("runtimeRef:")).to_be_visible()
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator(".title .state")).to_have_text("Suspended")
    assert (jobs.get("trainjob", "resnet") or {})["spec"]["suspend"] is True
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".title .state")).not_to_have_text("Suspended")


def test_failure_and_deletion(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The page of a failed training says why, and the training can be deleted there."""
    page.goto(session_dashboard.url("/jobs/vision/resnet-broken"))
    expect(page.locator(".title .state")).to_have_text("Failed")
    expect(page.locator("ol.timeline")).to_contain_text("no data in /data")
    expect(page.get_by_role("button", name="Suspend")).to_have_count(0)
    page.get_by_role("button", name="Delete ...").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Delete ...").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("was deleted")
    assert jobs.get("trainjob", "resnet-broken") is None


def test_explanation(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The page says why a training waits or has failed, with the remedy and the command that shows more."""
    page.goto(session_dashboard.url("/jobs/vision/resnet-later"))
    answer = page.get_by_role("region", name="Explanation")
    expect(answer).to_contain_text("Why it waits")
    expect(answer).to_contain_text("TrainJob resnet-later is suspended")
    expect(answer).to_contain_text("trainer resume resnet-later -n vision")
    expect(answer).to_contain_text("--kubeconfig")
    page.goto(session_dashboard.url("/jobs/vision/hostile-failure"))
    expect(answer).to_contain_text("Why it failed")
    expect(answer).to_contain_text(HOSTILE)
    assert page.locator("img, main script").count() == 0


def test_comparison(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """Trainings are compared in the same charts, and the comparison is in the address."""
    page.goto(session_dashboard.url("/?q=resnet"))
    for name in ("resnet", "resnet-later", "resnet-wide"):
        page.get_by_label(f"Select {name}", exact=True).check()
    page.get_by_role("link", name="Compare").click()
    table = page.get_by_role("region", name="Parameters and results", exact=True)
    expect(table.get_by_role("row")).to_have_count(2 + 3)
    page.get_by_role("button", name="Remove resnet-later").click()
    page.get_by_role("button", name="Remove resnet-wide").click()
    expect(table.get_by_role("row")).to_have_count(2 + 1)
    page.get_by_role("button", name="Choose trainings ...").click()
    page.get_by_role("checkbox", name="resnet-wide").check()
    page.get_by_role("button", name="Done").click()
    expect(table.get_by_role("row", name="resnet-wide")).to_contain_text("max 2.")
    assert "job=vision%2Fresnet-wide" in page.url
    figure = page.get_by_role("figure").filter(has_text="loss")
    expect(figure.locator("canvas")).to_be_attached()
    page.get_by_role("combobox", name="Smoothing").select_option("0.9")
    page.get_by_role("combobox", name="Over").select_option("time")
    expect(figure.locator("canvas")).to_be_attached()
    assert page.locator("img, main script").count() == 0
    page.goto(session_dashboard.url("/compare?job=vision/hostile"))
    expect(page.get_by_role("columnheader", name=HOSTILE)).to_be_visible()
    assert page.locator("img, main script").count() == 0
    page.goto(session_dashboard.url("/compare?job=vision/none"))
    expect(page.get_by_text("does not exist")).to_be_visible()


def test_zoom(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """Charts are zoomed with the mouse, with keys, and with buttons, all charts of an axis together."""
    page.goto(session_dashboard.url("/jobs/vision/resnet"))
    figure, other = (page.get_by_role("figure").filter(has_text=name) for name in ("loss", "learning_rate"))
    chart = page.get_by_role("group", name="Chart of loss")
    views = [each.locator("[aria-live=polite]") for each in (figure, other)]
    expect(figure).to_contain_text("max 2.")
    page.get_by_role("combobox", name="Smoothing").focus()
    while not chart.evaluate("chart => chart === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("+")
    for view in views:
        expect(view).to_contain_text("in view: step 5")
    shown = views[0].text_content() or ""
    page.keyboard.press("ArrowRight")
    expect(views[0]).not_to_have_text(shown)
    page.keyboard.press("ArrowLeft")
    expect(views[0]).to_have_text(shown)
    page.keyboard.press("Escape")
    for view in views:
        expect(view).to_have_text("")
    figure.get_by_role("button", name="Zoom in on loss").click()
    expect(views[0]).to_have_text(shown)
    figure.get_by_role("button", name="Zoom out of loss").click()
    expect(views[0]).to_have_text("")
    place = figure.locator("canvas").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 40)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] * 0.8, place["y"] + 40, steps=5)
    page.mouse.up()
    expect(views[0]).to_contain_text("in view: step")
    picture(page, "zoom")
    figure.get_by_role("button", name="Show all of loss").click()
    expect(views[0]).to_have_text("")


def test_runtimes(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """Runtimes are shown with what uses them, and each has a page."""
    page.goto(session_dashboard.url("/runtimes"))
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="plain", exact=True))
    expect(row).to_contain_text("active")
    picture(page, "runtimes")
    row.get_by_role("link", name="plain", exact=True).click()
    expect(page.get_by_role("heading", name="plain cluster")).to_be_focused()
    expect(page.get_by_role("link", name="resnet", exact=True)).to_be_visible()
    expect(page.get_by_text("replicatedJobs:")).to_be_visible()


def test_cluster(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The resources of the nodes are shown, and what waits for them."""
    page.goto(session_dashboard.url("/cluster"))
    expect(page.get_by_role("meter", name="Requested cpu", exact=True)).to_be_visible()
    node = page.get_by_role("table", name="Nodes").get_by_role("row").nth(1)
    expect(node).to_contain_text("Ready")
    expect(node.get_by_role("link", name="resnet", exact=True)).to_be_visible()
    waiting = page.get_by_role("region", name="Waiting TrainJobs")
    expect(waiting).to_contain_text("is suspended by")
    expect(waiting.get_by_role("link", name="resnet-later", exact=True)).to_be_visible()
    expect(waiting.get_by_role("link", name="resnet", exact=True)).to_have_count(0)


def test_objects(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The objects of a training are shown with the origin of each field of their templates."""
    page.goto(session_dashboard.url("/jobs/vision/resnet/objects"))
    expect(page.get_by_text("kind: JobSet")).to_be_visible()
    expect(page.locator(".origin").first).to_be_visible()
    expect(page.get_by_label("Objects of the TrainJob")).to_contain_text("# TrainJob")
    picture(page, "objects")


def test_hostile_texts(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """Names of metrics and lines of logs are texts, whatever is in them."""
    page.goto(session_dashboard.url("/jobs/vision/hostile"))
    expect(page.get_by_role("region", name="Single values")).to_contain_text(HOSTILE)
    page.get_by_role("link", name="Logs").click()
    log = page.get_by_role("log")
    expect(log.locator(".text")).to_have_text([HOSTILE, "red", "20 %"])
    expect(log.locator(".ansi-1")).to_have_text("red")
    assert page.locator("img, main script").count() == 0


def test_long_log(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """Of 10 MB of log the page has the last lines, and stays usable."""
    page.goto(session_dashboard.url("/jobs/vision/long-log/logs"))
    log = page.get_by_role("log")
    expect(log).to_contain_text("the last line")
    assert log.locator(".line").count() <= 1000
    page.get_by_label("Only lines with").fill("line 99999")
    expect(log.locator(".line")).to_have_count(1)


def test_live(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """What changes in the cluster shows without loading the page again, and what goes goes."""
    page.goto(session_dashboard.url("/?q=newcomer"))
    expect(page.get_by_text("No TrainJob matches.")).to_be_visible()
    jobs.apply(training("newcomer", "live_on()", suspend=True))
    expect(page.get_by_role("link", name="newcomer")).to_be_visible()
    jobs.kubectl("delete", "trainjob", "newcomer")
    expect(page.get_by_text("No TrainJob matches.")).to_be_visible()


def test_keyboard(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The list is walked through and opened with keys."""
    page.goto(session_dashboard.url("/?sort=name"))
    first = page.get_by_role("link", name="resnet", exact=True)
    expect(first).to_be_visible()
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="resnet vision")).to_be_visible()
    page.go_back()
    expect(first).to_be_visible()


@on_each_screen
def test_accessibility(
    context: BrowserContext, page: Page, session_dashboard: Dashboard, jobs: Cluster, scheme: str, width: int
) -> None:
    """axe finds nothing against WCAG AA on any page, and nothing is wider than the screen."""
    show_on(page, scheme, width)
    for path, shown in {
        "/": "resnet-later",
        "/jobs/vision/resnet": "max 2.",
        "/jobs/vision/resnet/logs": "step 200 of 800",
        "/jobs/vision/resnet/yaml": "runtimeRef",
        "/jobs/vision/resnet/objects": "kind: JobSet",
        "/jobs/vision/resnet-later": "Why it waits",
        "/compare?job=vision/resnet&job=vision/resnet-wide": "max 2.",
        "/runtimes": "active",
        "/clusterruntimes/plain": "replicatedJobs",
        "/cluster": "is suspended by",
    }.items():
        page.goto(session_dashboard.url(path))
        expect(page.get_by_text(shown).first).to_be_visible()
        picture(page, f"{path.partition('?')[0].strip('/').replace('/', '-') or 'list'}-{scheme}-{width}")
        assert_accessible(page)


@pytest.mark.parametrize("fragment", ["", "#token=of-an-earlier-process", "#code=used-before"])
def test_without_the_token(context: BrowserContext, session_dashboard: Dashboard, fragment: str) -> None:
    """Somebody without the token, or with that of an earlier process, sees where to get it, and nothing else."""
    page = context.new_page()
    page.goto(f"{session_dashboard.address}/jobs/vision/resnet{fragment}")
    expect(page.get_by_role("alert")).to_contain_text("trainer dashboard")
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)


def test_redirect_file(context: BrowserContext, jobs: Cluster, tmp_path: Path) -> None:
    """The browser is given a file, which leads it to the page and is gone then."""
    given, browser, home = tmp_path / "given", tmp_path / "browser", tmp_path / "home"
    home.mkdir()
    browser.write_text(f'#!/bin/sh\necho "$@" > {given}.new && mv {given}.new {given}\n')
    browser.chmod(0o700)
    command = [str(BIN / "trainer"), "dashboard", "--kubeconfig", str(jobs.kubeconfig)]
    process = Process(command, tmp_path / "dashboard.log", {"BROWSER": str(browser), "HOME": str(home)})
    try:
        start(process)
        until(given.is_file, "the browser is started")
        address = given.read_text().strip()
        assert address.startswith("file://")
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_role("link", name="resnet", exact=True)).to_be_visible()
        assert page.url.startswith("http://127.0.0.1:")
        assert "code" not in page.url
        until(lambda: not list(home.iterdir()), "the file is removed")
    finally:
        process.stop()


def test_new_address(context: BrowserContext, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The address of a new process, opened in the tab of an earlier one, signs that tab in, and those of its links."""
    page = context.new_page()
    page.goto(f"{session_dashboard.address}/#token=of-an-earlier-process")
    expect(page.get_by_role("alert")).to_contain_text("trainer dashboard")
    page.goto(session_dashboard.url())
    resnet = page.get_by_role("link", name="resnet", exact=True)
    expect(resnet).to_be_visible()
    with context.expect_page() as opened:
        resnet.click(modifiers=["Control"])
    expect(opened.value.get_by_role("heading", name="resnet vision")).to_be_visible()
