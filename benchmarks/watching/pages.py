"""Pages that somebody looks at: event streams as a page reads them, and pages in a browser."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from shutil import which
from typing import Any, Final

import aiohttp
import msgspec
from anyio.abc import TaskStatus

from benchmarks.watching.cluster import name_of

_LONGEST_EVENT: Final = 64 * 2**20
_ROWS: Final = b"event: rows\ndata: "
_DEADLINE: Final = 60.0
_PAINT: Final = """
() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null
"""
_LISTED: Final = """
(text) => document.querySelector('[role="status"]')?.textContent === text && performance.now()
"""
_SHOWN: Final = """
(value) => document.querySelector("[data-index] progress")?.value === value && Date.now()
"""
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class Arrivals:
    """What was changed when, and how long it took to arrive."""

    written: dict[tuple[str, int], float] = field(default_factory=dict)
    """Time of each change by TrainJob and percentage, by the clock of the machine."""
    latencies: list[float] = field(default_factory=list)

    def note(self, row: dict[str, Any]) -> None:
        """A row has arrived."""
        began = self.written.get((row["name"], row["progress"]))
        if began is not None:
            self.latencies.append(time.time() - began)


async def follow_list(
    address: str, token: str, jobs: int, arrivals: Arrivals, *, task_status: TaskStatus[float]
) -> None:
    """Read the stream of a list until cancelled; starts with the seconds until all rows were there."""
    headers = {"Authorization": f"Bearer {token}"}
    began = time.perf_counter()
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=timeout, read_bufsize=2**20) as session,
        session.get(f"{address}/api/trainjobs", headers=headers) as answer,
    ):
        answer.raise_for_status()
        is_listed = has_more = False
        while True:
            block = await answer.content.readuntil(b"\n\n", max_size=_LONGEST_EVENT)
            if not block.startswith(_ROWS):
                continue
            rows = _decode(block.removeprefix(_ROWS))
            if (listed := rows.get("all")) is not None:
                if len(listed) + rows["more"] != jobs:
                    raise RuntimeError(f"the list has {len(listed) + rows['more']} of {jobs} TrainJobs")
                has_more = rows["more"] > 0
            for row in rows.get("changed", ()):
                arrivals.note(row)
            if not is_listed and (listed is None or not has_more):
                is_listed = True
                task_status.started(time.perf_counter() - began)


@dataclass(slots=True)
class BrowserPage:
    """A list in a browser."""

    page: Any
    paint: float
    """Seconds from the navigation to the first contentful paint."""
    listed: float
    """Seconds from the navigation until the page says that all TrainJobs are there."""

    async def wait_for(self, percentage: int) -> float:
        """When the first row shows this progress, by the clock of the machine."""
        shown = await self.page.wait_for_function(_SHOWN, arg=percentage, polling="raf", timeout=_DEADLINE * 1000)
        return float(await shown.json_value()) / 1000


@asynccontextmanager
async def browsers(address: str, tokens: list[str], jobs: int) -> AsyncIterator[list[BrowserPage]]:
    """One page for each token, each as in a browser of its own, all of which show the first TrainJob alone.

    Raises:
        RuntimeError: there is no Chromium or no Playwright.
    """
    chromium = which("chromium")
    if chromium is None:
        raise RuntimeError("there is no chromium on this machine")
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415 - what only the browsers need
    except ImportError as error:
        raise RuntimeError("Playwright is not installed: make bench-dashboard does") from error
    async with async_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = await playwright.chromium.launch(executable_path=chromium, args=flags)
        try:
            yield [await _open(browser, address, token, jobs) for token in tokens]
        finally:
            await browser.close()


async def _open(browser: Any, address: str, token: str, jobs: int) -> BrowserPage:
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    await context.add_init_script(f"sessionStorage.setItem('typed', '{token}')")
    page = await context.new_page()
    await page.goto(f"{address}/")
    text = f"{jobs} of {jobs} TrainJobs"
    listed = await page.wait_for_function(_LISTED, arg=text, polling="raf", timeout=_DEADLINE * 1000)
    found = BrowserPage(page, await page.evaluate(_PAINT) / 1000, float(await listed.json_value()) / 1000)
    await page.get_by_role("searchbox").first.fill(name_of(0))
    return found
