"""A browser, and the dashboard of a cluster that it opens."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import Cluster
from e2e.kubectl import BIN
from e2e.processes import Process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

ROOT = Path(__file__).parents[2]
AXE = ROOT / "packages/dashboard/web/node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",  # tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PICTURES = os.environ.get("DASHBOARD_PICTURES")
"""A directory for pictures of the pages; none are taken without."""


needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="npm has not installed axe-core")


def on_each_screen(test: Callable[..., None]) -> Callable[..., None]:
    """Have a test run with a light and a dark page, on a large and a small screen, where axe is installed."""
    for mark in (
        needs_axe,
        pytest.mark.parametrize("scheme", ["light", "dark"]),
        pytest.mark.parametrize("width", [1280, 360]),
    ):
        test = mark(test)
    return test


def show_on(page: Page, scheme: str, width: int) -> None:
    """Have the page shown on such a screen."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})


def assert_accessible(page: Page) -> None:
    """axe finds nothing against WCAG AA, and nothing is wider than the screen."""
    # Over the protocol of the debugger: the policy of the page lets no other script in.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
    wrong = [(each["id"], [node["html"] for node in each["nodes"][:3]]) for each in found["violations"]]
    assert wrong == [], page.url
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A `trainer dashboard` that runs."""

    process: Process
    address: str
    """Of the page, without the token."""
    token: str

    def url(self, path: str = "/") -> str:
        """The address of a view."""
        return f"{self.address}{path}#token={self.token}"


def start(process: Process) -> Dashboard:
    """Start a dashboard; the caller stops its process."""
    process.start(ready="dashboard: http://127.0.0.1:")
    found = re.search(r"dashboard: (http://127\.0\.0\.1:\d+)/#token=(\S+)", process.output())
    assert found is not None, process.output()
    return Dashboard(process, found[1], found[2])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine: install the package chromium")
    api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def session_dashboard(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """The dashboard of the administrator."""
    command = [str(BIN / "trainer"), "dashboard", "--no-browser", "--kubeconfig", str(session_cluster.kubeconfig)]
    process = Process(command, tmp_path_factory.mktemp("dashboard") / "dashboard.log")
    yield start(process)
    process.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that nobody has used, in which nothing may go wrong."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(30_000)
    yield context
    context.close()


def complaint(message: ConsoleMessage) -> str:
    """What the browser says on its console, and of which address."""
    return f"{message.text} ({message.location['url']})"


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page without errors: of scripts, of the policy, or of requests to elsewhere."""
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("console", lambda message: complaints.append(complaint(message)) if message.type == "error" else None)
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.on("request", lambda sent: None if "//127.0.0.1:" in sent.url else complaints.append(f"to {sent.url}"))
    yield page
    assert complaints == []


def picture(page: Page, name: str) -> None:
    """Keep what the page looks like, if pictures are wanted."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"dashboard-{name}.png")
