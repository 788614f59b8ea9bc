"""A sweep side by side: what differed, what came of it, and which of its trainings are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.dashboard.conftest import assert_accessible, on_each_screen, picture, show_on
from e2e.dashboard.test_many import serving
from packages.dashboard.tests.conftest import UserClient, node_pod, train_job
from packages.dashboard.tests.past_trainings import KUBE_SYSTEM, past_training, save, save_documents, save_samples
from trainer.api.progress_tags import TAG
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import SERVED
from trainer_dashboard.history.database import Database
from trainer_dashboard.past.past_trainings import PastTrainings

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

COUNT = 52
"""Two more than can be compared."""
WITH_METRICS = 12
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
RATES = ("1e-4", "1e-3", "1e-2")
OPTIMIZERS = ("adamw", "sgd")


def job(number: int) -> Object:
    """One of the sweep; the rate and the optimizer differ."""
    script = f"torchrun train.py --lr {RATES[number % 3]} --optimizer {OPTIMIZERS[number % 2]} --model resnet50"
    made = train_job(f"sweep-{number:02}", namespace="vision", state="Running")
    made["spec"]["trainer"] = {"numNodes": 2, "command": ["bash", "-c", f"pip install -r a.txt && {script}"]}
    return made


def messages(number: int) -> Iterator[bytes]:
    """What it prints: the higher its number, the lower its loss."""
    for step in range(1, 31):
        loss = (20 - number) / 10 + 2 / step
        metrics = {"trainMetrics": {"loss": round(loss, 4), "grad_norm": 1 + step % 3}}
        evaluation = {"evalMetrics": {"accuracy": round(1 - loss / 4, 4)}} if step % 5 == 0 else {}
        yield f"{TAG} {json.dumps({'currentStep': step, **metrics, **evaluation})}\n".encode()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """A dashboard of a sweep, one training of which the cluster has forgotten."""
    client = UserClient(KUBE_SYSTEM, resources=(TRAIN_JOBS, *SERVED.values(), NAMESPACES))
    for number in range(COUNT):
        made = job(number)
        client.add(made)
        if number >= WITH_METRICS:
            continue
        pod = node_pod(made["metadata"]["name"])
        pod["metadata"]["namespace"] = "vision"
        client.add(pod)
        log = client.log(pod["metadata"]["name"], "vision", "node")
        for line in messages(number):
            log.write(line)
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('history')}/history.db")
    database.migrate()
    save(database, past_training("u", name="forgotten", deleted=90.0) | {"namespace": "vision"})
    save_documents(database, "u", trainjob=job(0))
    save_samples(database, "u", [3, 2, 1])
    with serving(client, PastTrainings(database, client, "https://cluster")) as (address, _):
        yield address
    database.close()


def compared(count: int, more: str = "") -> str:
    """The path of a comparison of so many."""
    return "/compare?" + "&".join(f"job=vision/sweep-{number:02}" for number in range(count)) + more


def test_sweep(page: Page, url: Callable[[str], str]) -> None:
    """The table sorts by a result, an axis filters, all parts point at one training, and the address holds it."""
    page.goto(url(compared(WITH_METRICS)))
    table = page.get_by_role("region", name="Parameters and results", exact=True).get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(2 + WITH_METRICS)
    row = table.get_by_role("row").nth(2)
    expect(table.get_by_role("row", name="sweep-11")).to_contain_text("best")
    expect(table.get_by_role("columnheader", name="model")).to_have_count(0)
    table.get_by_role("button", name="accuracy").click()
    expect(row).to_contain_text("sweep-11")
    picture(page, "compare")
    table.get_by_role("button", name="loss", exact=True).click()
    expect(row).to_contain_text("sweep-11")
    table.get_by_role("button", name="loss", exact=True).click()
    expect(row).to_contain_text("sweep-00")
    expect(row).to_contain_text("1e-4")
    page.get_by_role("combobox", name="Results are").select_option("least values")
    expect(row).to_contain_text("2.067")
    page.get_by_text("values are the same in all").click()
    expect(page.get_by_text("resnet50")).to_be_visible()
    legend = page.get_by_role("list", name="Trainings in the charts")
    expect(legend.get_by_role("button")).to_have_count(WITH_METRICS)
    legend.get_by_role("button", name="sweep-03").hover()
    expect(table.locator("tr.raised")).to_contain_text("sweep-03")
    expect(page.locator(".parallel .raised")).to_be_attached()
    legend.get_by_role("button", name="sweep-03").click()
    expect(legend.get_by_role("button", name="sweep-03")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("heading", name="Parameters and results").scroll_into_view_if_needed()
    axis = page.locator(".parallel .brush").first
    axis.scroll_into_view_if_needed()
    place = axis.bounding_box()
    assert place is not None
    middle = place["x"] + place["width"] / 2
    page.mouse.move(middle, place["y"] + place["height"] * 0.25)
    page.mouse.down()
    page.mouse.move(middle, place["y"] + place["height"] - 2, steps=4)
    page.mouse.up()
    expect(page.get_by_text(f"8 of {WITH_METRICS} trainings")).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(2 + 8)
    for part in ("sort=-mt%3Aloss", "result=min", "off=vision%2Fsweep-03", "keep=%5B%22p%3Alr"):
        assert part in page.url
    picture(page, "compare-kept")
    page.reload()
    expect(page.get_by_text(f"8 of {WITH_METRICS} trainings")).to_be_visible()
    expect(row).to_contain_text("sweep-00")
    page.get_by_role("button", name="Keep all of lr again").click()
    expect(table.get_by_role("row")).to_have_count(2 + WITH_METRICS)
    table.get_by_role("button", name="Remove sweep-05").click()
    expect(table.get_by_role("row")).to_have_count(1 + WITH_METRICS)


def test_choosing(page: Page, url: Callable[[str], str]) -> None:
    """Trainings are chosen from a list, those of the history too, and no more than can be compared."""
    page.goto(url("/compare"))
    page.get_by_role("button", name="Choose trainings ...").click()
    dialog = page.get_by_role("dialog", name="Choose trainings")
    dialog.get_by_role("searchbox").fill("sweep-0")
    dialog.get_by_role("checkbox", name="sweep-07").check()
    dialog.get_by_role("button", name="Of the history").click()
    dialog.get_by_role("searchbox").fill("forgot")
    dialog.get_by_role("checkbox", name="forgotten").check()
    expect(dialog.get_by_role("status")).to_have_text("2 of 50 chosen")
    dialog.get_by_role("button", name="On the cluster").click()
    dialog.get_by_role("searchbox").fill("sweep-0")
    dialog.get_by_role("button", name="Choose all 9").click()
    expect(dialog.get_by_role("status")).to_have_text("11 of 50 chosen")
    dialog.get_by_role("button", name="Done").click()
    table = page.get_by_role("region", name="Parameters and results", exact=True)
    expect(table.get_by_role("row")).to_have_count(2 + 11)
    expect(table.get_by_role("row", name="forgotten")).to_contain_text("max 3")
    assert re.search("past=vision%2Fforgotten%2Fu", page.url)
    page.goto(url(compared(COUNT)))
    expect(page.get_by_role("alert")).to_have_text("The address names 2 more: 50 can be compared at once.")
    expect(table.get_by_role("row")).to_have_count(2 + 50)
    page.get_by_role("button", name="Choose trainings ...").click()
    expect(dialog.get_by_role("status")).to_have_text("50 of 50 chosen: uncheck one to choose another")
    expect(dialog.get_by_role("checkbox", name="sweep-51")).to_be_disabled()


@on_each_screen
def test_accessibility(page: Page, url: Callable[[str], str], scheme: str, width: int) -> None:
    """axe finds nothing against WCAG AA, and nothing is wider than the screen."""
    show_on(page, scheme, width)
    page.goto(url(compared(3, "&past=vision/forgotten/u")))
    expect(page.locator("canvas")).to_have_count(3)
    expect(page.get_by_text("best").first).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="Choose trainings ...").click()
    expect(page.get_by_role("checkbox", name="sweep-00")).to_be_checked()
    assert_accessible(page)
    page.goto(url("/compare"))
    expect(page.get_by_role("heading", name="Put trainings side by side")).to_be_visible()
    assert_accessible(page)


def test_export(page: Page, url: Callable[[str], str]) -> None:
    """The table is saved with all of its values, and a chart with the samples of all trainings in it."""
    page.goto(url(compared(2)))
    expect(page.get_by_text("best").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the table as CSV").click()
    head, first, second = Path(download.value.path()).read_text().splitlines()
    assert "evaluation accuracy max" in head
    assert (first.split(",")[:2], second.split(",")[:2]) == (["vision", "sweep-00"], ["vision", "sweep-01"])
    figure = page.get_by_role("figure").filter(has_text="grad_norm")
    figure.hover()
    with page.expect_download() as download:
        figure.get_by_role("button", name="Download grad_norm as CSV").click()
    assert len(Path(download.value.path()).read_text().splitlines()) == 61
