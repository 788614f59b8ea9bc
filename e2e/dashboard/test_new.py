"""The story of somebody who writes a TrainJob on the page: with the form, in the YAML, as a copy, and once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import Cluster
from e2e.dashboard.conftest import Dashboard, assert_accessible, on_each_screen, picture, show_on
from e2e.progress_training import training

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Dialog, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LINES = "editor => [...editor.shadowRoot.querySelectorAll('.cm-line')].map(line => line.textContent)"


@pytest.fixture(scope="module")
def jobs(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace with a training to copy, one that has failed, and its first retry."""
    own = replace(session_cluster, namespace="new")
    session_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
    resnet = training("resnet", "live_on()", suspend=True)
    resnet["spec"]["trainer"] |= {
        "command": ["python", "train.py"],
        "args": ["--lr", "0.1", "--epochs", "90"],
        "env": [
            {"name": "SEED", "value": "1"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token", "optional": True}}},
        ],
    }
    failing = "write('no data in /data\\n'); sys.exit(3)"
    own.apply(resnet, training("broken", failing), training("broken-2", failing, suspend=True))
    own.wait_for_state("broken", "Failed")
    yield own
    session_cluster.kubectl("delete", "namespace", "new", "--timeout=60s")


def written(page: Page) -> str:
    """The YAML as the editor shows it."""
    return "\n".join(page.locator(".editor-host").evaluate(LINES))


def write(page: Page, text: str) -> None:
    """Type another text over that of the editor."""
    page.get_by_role("textbox", name="YAML").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def spec_of(jobs: Cluster, name: str) -> dict[str, Any]:
    """What was created."""
    spec = (jobs.get("trainjob", name) or {})["spec"]
    assert isinstance(spec, dict)
    return spec


def test_copy(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """A copy is changed in the form and in the YAML, each of which shows what the other has, and created."""
    page.goto(session_dashboard.url("/jobs/new/resnet"))
    page.get_by_role("link", name="Clone and edit").click()
    expect(page.get_by_role("heading", name="New TrainJob")).to_be_focused()
    verdict, create = page.get_by_role("status"), page.get_by_role("button", name="Create", exact=True)
    expect(verdict).to_have_text("The cluster would take it as resnet-2 in new.")
    page.get_by_label("Nodes", exact=True).fill("2")
    page.get_by_role("textbox", name="Arguments").fill("--lr 0.2 --name 'a b'")
    page.get_by_label("Value of SEED").fill("2")
    page.get_by_role("button", name="Add variable").click()
    page.keyboard.type("DEBUG")
    page.keyboard.press("Tab")
    page.keyboard.type("yes")
    for line in ("numNodes: 2", "- --lr", "- '0.2'", "- a b", "name: DEBUG", "value: 'yes'", "value: '2'"):
        expect(page.locator(".cm-line").filter(has_text=line)).to_have_count(1)
    expect(page.locator(".cm-line").filter(has_text="suspend")).to_have_count(0)
    page.get_by_role("button", name="Restore Arguments").click()
    expect(page.get_by_role("textbox", name="Arguments")).to_have_value("--lr 0.1\n--epochs 90")
    page.get_by_label("Show changes").check()
    expect(page.locator(".editor-host .cm-deletedChunk").first).to_be_visible()
    page.get_by_label("Name", exact=True).scroll_into_view_if_needed()
    picture(page, "clone")
    page.get_by_label("Show changes").uncheck()
    expect(page.locator(".editor-host .cm-deletedChunk")).to_have_count(0)
    write(page, written(page).replace("numNodes: 2", "numNodes: 3  # three") + "  suspend: true\n")
    page.keyboard.press("Control+Home")
    page.keyboard.type("# Kept as it was typed.\n")
    expect(page.get_by_label("Nodes", exact=True)).to_have_value("3")
    page.get_by_label("Nodes", exact=True).fill("2")
    expect(page.locator(".cm-line").filter(has_text="numNodes: 2  # three")).to_have_count(1)
    expect(page.locator(".cm-line").first).to_have_text("# Kept as it was typed.")
    expect(verdict).to_have_text("The cluster would take it as resnet-2 in new.")
    assert jobs.get("trainjob", "resnet-2") is None
    create.click()
    expect(page.get_by_role("heading", name="resnet-2 new")).to_be_visible()
    created = spec_of(jobs, "resnet-2")
    assert created["trainer"]["numNodes"] == 2
    assert [each["name"] for each in created["trainer"]["env"]] == ["SEED", "TOKEN", "DEBUG"]
    page.get_by_role("button", name="Scale ...").click()
    page.get_by_role("spinbutton").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Scale").click()
    expect(page.locator(".facts div").filter(has_text="Nodes")).to_contain_text("3")
    jobs.kubectl("delete", "trainjob", "resnet-2")


def test_mistakes(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """What is wrong stands at its line and at its field; YAML that cannot be read makes the form wait."""
    page.goto(session_dashboard.url("/new/new/resnet"))
    verdict, create = page.get_by_role("status"), page.get_by_role("button", name="Create", exact=True)
    nodes, editor = page.get_by_label("Nodes", exact=True), page.locator(".editor-host")
    expect(verdict).to_have_text("The cluster would take it as resnet-2 in new.")
    text = written(page)
    nodes.fill("-1")
    expect(verdict).to_contain_text("spec.trainer.numNodes")
    expect(create).to_be_disabled()
    expect(nodes).to_have_attribute("aria-invalid", "true")
    expect(editor.locator(".cm-wrong")).to_have_text("numNodes: -1")
    expect(editor.locator(".cm-message")).to_be_visible()
    picture(page, "clone-wrong")
    nodes.fill(HOSTILE)
    expect(verdict).to_contain_text(HOSTILE)
    assert page.locator("main img, main script").count() == 0
    write(page, text.replace("runtimeRef:", "runtimeReff:"))
    expect(page.get_by_role("combobox", name="Runtime")).to_have_value("")
    write(page, text.replace("spec:", "spec: ["))
    expect(verdict).to_contain_text("Line ")
    expect(page.get_by_text("The form waits until the YAML can be read")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_be_disabled()
    expect(create).to_be_disabled()
    page.get_by_role("textbox", name="YAML").press("Control+Z")
    write(page, text)
    expect(page.get_by_label("Name", exact=True)).to_be_enabled()
    page.get_by_role("textbox", name="Arguments").fill("--name 'a")
    expect(page.get_by_text("The quote ' is not closed.")).to_be_visible()
    expect(verdict).to_have_text("The cluster would take it as resnet-2 in new.")
    create.click()
    expect(page.get_by_role("textbox", name="Arguments")).to_be_focused()
    assert jobs.get("trainjob", "resnet-2") is None


def test_empty(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """A TrainJob begins with nothing but a name; a runtime is chosen with keys, and only what was chosen is sent."""
    page.goto(session_dashboard.url("/new?namespace=new"))
    verdict = page.get_by_role("status")
    expect(verdict).to_contain_text("Choose a runtime")
    expect(page.get_by_role("button", name="Create", exact=True)).to_be_disabled()
    page.get_by_role("combobox", name="Runtime").focus()
    page.keyboard.type("plain")
    expect(page.get_by_role("listbox", name="Runtimes").get_by_role("option").first).to_contain_text("plain")
    picture(page, "new")
    page.keyboard.press("Enter")
    expect(verdict).to_have_text("The cluster would take it as training-1 in new.")
    page.get_by_role("textbox", name="Command").fill("python -c 'print(1)'")
    page.get_by_label("Image").fill("python:3.11-slim")
    page.get_by_label("Image").fill("")
    expect(verdict).to_have_text("The cluster would take it as training-1 in new.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="training-1 new")).to_be_visible()
    sent = spec_of(jobs, "training-1")
    assert sent["trainer"] == {"command": ["python", "-c", "print(1)"]}
    assert sent["runtimeRef"]["name"] == "plain"
    jobs.kubectl("delete", "trainjob", "training-1")
    page.goto(session_dashboard.url("/clusterruntimes/plain"))
    page.get_by_role("link", name="New TrainJob").click()
    expect(page.get_by_role("combobox", name="Runtime")).to_have_value("plain")


def test_draft(context: BrowserContext, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """What was typed is there after the page was loaded again or left, both of which ask first."""
    page = context.new_page()
    asked: list[str] = []

    def accept(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", accept)
    page.goto(session_dashboard.url("/jobs/new/resnet"))
    page.get_by_role("link", name="Clone and edit").click()
    name = page.get_by_label("Name", exact=True)
    expect(name).to_have_value("resnet-2")
    name.press("End")
    page.keyboard.type("-mine")
    page.reload()
    assert asked == ["beforeunload"]
    expect(page.get_by_text("What you typed before is back.")).to_be_visible()
    expect(name).to_have_value("resnet-2-mine")
    page.go_back()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Leave without creating it?")
    dialog.get_by_role("button", name="Stay").click()
    expect(name).to_have_value("resnet-2-mine")
    page.get_by_role("link", name="Runtimes").click()
    dialog.get_by_role("button", name="Leave").click()
    expect(page.get_by_role("heading", name="Runtimes")).to_be_visible()
    page.goto(session_dashboard.url("/new/new/resnet"))
    expect(name).to_have_value("resnet-2-mine")
    page.get_by_role("link", name="Runtimes").click()
    dialog.get_by_role("button", name="Discard it").click()
    expect(page.get_by_role("heading", name="Runtimes")).to_be_visible()
    page.goto(session_dashboard.url("/new/new/resnet"))
    expect(name).to_have_value("resnet-2")
    page.close()


def test_styles_of_other_pages(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """The styles of this page stay when another one is shown, and change nothing there: controls of charts, dialogs."""
    page.goto(session_dashboard.url("/runtimes"))
    styles = """names => names.map(name => {
        const element = document.body.appendChild(document.createElement("div"));
        element.className = name;
        const {position, display, width, height, margin, padding} = getComputedStyle(element);
        element.remove();
        return [position, display, width, height, margin, padding].join();
    })"""
    names = ["filters options", "picker", "menu", "panel", "verdict", "fold", "chip", "nothing"]
    before = page.evaluate(styles, names)
    page.get_by_role("link", name="TrainJobs", exact=True).click()
    page.get_by_role("link", name="New TrainJob").first.click()
    expect(page.get_by_role("combobox", name="Runtime")).to_be_visible()
    assert page.evaluate(styles, names) == before


def test_retry(page: Page, session_dashboard: Dashboard, jobs: Cluster) -> None:
    """A failed training is submitted once more with one click, under the next name that is free."""
    page.goto(session_dashboard.url("/jobs/new/broken"))
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("heading", name="broken-3 new")).to_be_visible()
    assert spec_of(jobs, "broken-3")["trainer"] == spec_of(jobs, "broken")["trainer"]
    jobs.kubectl("delete", "trainjob", "broken-3")


@on_each_screen
def test_accessibility(page: Page, session_dashboard: Dashboard, jobs: Cluster, scheme: str, width: int) -> None:
    """axe finds nothing against WCAG AA in the form, the YAML, the changes, the choices and the errors."""
    show_on(page, scheme, width)
    page.goto(session_dashboard.url("/new/new/resnet"))
    expect(page.get_by_text("The cluster would take it")).to_be_visible()
    assert_accessible(page)
    form = page.get_by_role("group", name="Form")
    assert form.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    page.get_by_label("Nodes", exact=True).fill("-1")
    expect(page.get_by_role("status")).to_contain_text("spec.trainer.numNodes")
    picture(page, f"new-form-{scheme}-{width}")
    assert_accessible(page)
    page.get_by_role("combobox", name="Runtime").click()
    expect(page.get_by_role("listbox", name="Runtimes").get_by_role("option").first).to_be_visible()
    picture(page, f"new-runtimes-{scheme}-{width}")
    assert_accessible(page)
    page.keyboard.press("Escape")
    if width < 960:
        page.get_by_role("button", name="YAML").click()
    page.get_by_label("Show changes").check()
    picture(page, f"new-yaml-{scheme}-{width}")
    assert_accessible(page)
    page.get_by_role("link", name="Runtimes").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="Discard it").click()
