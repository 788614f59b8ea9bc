"""A list of thousands of TrainJobs, of a cluster that is simulated: no machine runs so many."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import start_blocking_portal

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.v1alpha1.discovery import V2ALPHA1
from trainer.dashboard.gate import LoopbackGate
from trainer.dashboard.server import Dashboard, DashboardOptions
from trainer.kube.testing import FakeClient

if TYPE_CHECKING:
    from playwright.sync_api import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
COUNT = 5000


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


def test_many(page: Page) -> None:
    """Of 5,000 rows those on the screen are in the document; all can be scrolled to, found, and are live."""
    client = FakeClient(*(train_job(number) for number in range(COUNT)), resources=[TRAIN_JOBS])
    gate = LoopbackGate(client)
    dashboard = Dashboard(client, V2ALPHA1, DashboardOptions(namespace="vision"), gate=gate)
    listening = threading.Event()

    async def started() -> None:
        listening.set()

    async def run() -> None:
        await dashboard.run(started=started)

    with start_blocking_portal() as portal:
        running = portal.start_task_soon(run)
        try:
            assert listening.wait(60)
            page.goto(f"{dashboard.address}#token={gate.token}")
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
        finally:
            running.cancel()
