"""A sweep that is gone is found below those of the cluster, and shown as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.dashboard.conftest import assert_accessible, needs_axe, show_on
from e2e.dashboard.test_many import serving
from packages.dashboard.tests.past_trainings import KUBE_SYSTEM, past_training, save, save_documents, save_sweep
from packages.dashboard.tests.sweeps import cluster as serving_sweeps
from packages.dashboard.tests.sweeps import searched, sweep
from trainer_dashboard.history.database import Database
from trainer_dashboard.past.past_trainings import PastTrainings
from trainer_dashboard.server import DashboardOptions

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

COUNT = 12


@pytest.fixture
def url(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Addresses of a dashboard with one sweep of the cluster, and of one that is gone."""
    database = Database(f"sqlite:///{tmp_path}/history.db")
    database.migrate()
    gone, jobs = searched("resnet", COUNT)
    save_sweep(database, gone, deleted=7200.0)
    for number, job in enumerate(jobs, 1):
        of_sweep = {"sweep_uid": "uid-of-resnet", "sweep": "resnet", "trial": number}
        row = past_training(job["metadata"]["uid"], 60.0 * number, name=job["metadata"]["name"], deleted=7200.0)
        save(database, row | {"namespace": "default"} | of_sweep)
        save_documents(database, job["metadata"]["uid"], trainjob=job)
    client = serving_sweeps()
    client.add(KUBE_SYSTEM)
    client.add(sweep(state="Running"))
    past = PastTrainings(database, client, "")
    with serving(client, past=past, options=DashboardOptions()) as (address, _):
        yield address
    database.close()


def test_story(page: Page, url: Callable[[str], str]) -> None:
    """A user finds a sweep that is gone, sees what it had reached, compares, and comes from a trial back to it."""
    page.goto(url("/sweeps"))
    table = page.get_by_role("table", name="Sweeps that are gone from the cluster")
    expect(table.get_by_role("row", name="resnet")).to_contain_text(f"{COUNT} of {COUNT}")
    expect(page.get_by_role("table", name="Sweeps", exact=True)).not_to_contain_text("resnet")
    table.get_by_role("link", name="resnet").click()
    expect(page.get_by_text("This sweep is gone since")).to_be_visible()
    expect(page.get_by_text("trainer history sweeps default/resnet")).to_be_visible()
    expect(page.locator(".parallel .line")).to_have_count(COUNT)
    expect(page.get_by_role("link", name="Train the best again")).to_have_count(0)
    expect(page.get_by_role("figure").locator("canvas")).to_be_attached()
    page.get_by_role("link", name="Compare the best 5").click()
    expect(page.get_by_role("heading", name="Compare TrainJobs 5")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Open the best trial").click()
    expect(page.get_by_text("This TrainJob is gone since")).to_be_visible()
    page.get_by_role("link", name="resnet, trial").click()
    expect(page.get_by_role("heading", name="resnet default")).to_be_visible()
    page.goto(url("/sweeps/default/resnet"))
    page.get_by_role("link", name="Look for it in the history").click()
    expect(table.get_by_role("link", name="resnet")).to_be_visible()


@needs_axe
@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_accessible(page: Page, url: Callable[[str], str], scheme: str, width: int) -> None:
    """The list and the page of a past sweep are accessible, and fit the screen."""
    show_on(page, scheme, width)
    for path, wanted in (("/sweeps", "Gone from the cluster"), ("/past-sweeps/default/resnet/uid-of-resnet", "Trials")):
        page.goto(url(path))
        expect(page.get_by_role("heading", name=wanted, exact=True)).to_be_visible()
        assert_accessible(page)
