"""`trainer dashboard`."""

from __future__ import annotations

import json
import re
import stat
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from anyio import to_thread

from trainer.cli.main import main
from trainer.kube.client import Client
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.commands.redirect_file import RedirectFile
from trainer_dashboard.server import Dashboard, DashboardOptions


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of the user."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@dataclass
class Browser:
    """What was given to the browser of the user, and what it found there."""

    is_there: bool
    opened: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    modes: list[tuple[int, int]] = field(default_factory=list)
    """Of the directory and of the file."""
    has_read: threading.Event = field(default_factory=threading.Event)

    def open(self, url: str) -> bool:
        """See `webbrowser.open`."""
        path = Path(url2pathname(urlsplit(url).path))
        self.opened.append(url)
        self.read.append(path.read_text())
        self.modes.append((stat.S_IMODE(path.parent.stat().st_mode), stat.S_IMODE(path.stat().st_mode)))
        self.has_read.set()
        return self.is_there


def show(options: Iterable[str], browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command until the browser has been opened."""

    async def run(page: Dashboard, *, started: Callable[[], Awaitable[None]]) -> None:
        await started()
        if "--no-browser" not in options:
            await to_thread.run_sync(browser.has_read.wait, 10)

    monkeypatch.setattr(webbrowser, "open", browser.open)
    monkeypatch.setattr(Dashboard, "run", run)
    monkeypatch.setattr("sys.argv", ["trainer", "dashboard", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in {None, 0}
    for thread in threading.enumerate():
        if thread.name == "browser":
            thread.join(10)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "is_there", "says"),
    [
        pytest.param([], True, "", id="browser"),
        pytest.param([], False, "note: no browser could be opened", id="no-browser-there"),
        pytest.param(["--no-browser"], True, "", id="no-browser-wanted"),
    ],
)
def test_addresses(
    options: list[str],
    is_there: bool,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    home: Path,
) -> None:
    """The terminal shows the token; the browser gets the path of a file that only its user reads, with the code."""
    browser = Browser(is_there)
    show(options, browser, monkeypatch)
    printed = capsys.readouterr()
    token = re.fullmatch(r"dashboard: http://127\.0\.0\.1:0/#token=(\S{40,})\n", printed.out)
    assert token is not None, printed.out
    assert says in printed.err
    assert len(browser.opened) == ("--no-browser" not in options)
    for url, content, modes in zip(browser.opened, browser.read, browser.modes, strict=True):
        (code,) = set(re.findall(r"http://127\.0\.0\.1:0/#code=([\w-]{40,})\"", content))
        assert code not in url
        assert token[1] not in content
        assert modes == (0o700, 0o600)
        assert Path(urlsplit(url).path).is_relative_to(home)
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("options", [[], ["--context", "of-the-test"]], ids=["current context", "--context"])
def test_name_of_the_cluster(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The page calls the cluster by its context, also where that is the current one."""
    shown: list[str] = []
    made = Dashboard.__init__

    def init(page: Dashboard, client: Client, served: Served, options: DashboardOptions, **others: Any) -> None:
        shown.append(options.name)
        made(page, client, served, options, **others)

    monkeypatch.setattr(Dashboard, "__init__", init)
    show([*options, "--no-browser"], Browser(is_there=True), monkeypatch)
    assert shown == ["of-the-test"]


@pytest.mark.usefixtures("cluster")
def test_without_a_home_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the home directory cannot be written to, the file is in the directory for temporary files."""
    home.rmdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    browser = Browser(is_there=True)
    show([], browser, monkeypatch)
    assert [Path(urlsplit(url).path).is_relative_to(tmp_path) for url in browser.opened] == [True]
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_the_file_goes_when_it_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the page has been opened, the file is removed while the command runs."""
    browser = Browser(is_there=True)
    monkeypatch.setattr(webbrowser, "open", browser.open)
    with RedirectFile() as redirect:
        redirect.open_in_browser("http://127.0.0.1:1/#code=a&b")
        (thread,) = (each for each in threading.enumerate() if each.name == "browser")
        assert browser.has_read.wait(10)
        redirect.remove()
        thread.join(10)
        assert list(home.iterdir()) == []
    assert "#code=a&amp;b" in browser.read[0]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Dashboard]:
    """The dashboards that are run, in a state directory of their own."""
    run_pages: list[Dashboard] = []

    async def run(page: Dashboard, *, started: Callable[[], Awaitable[None]]) -> None:
        run_pages.append(page)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("TRAINER_HISTORY_DATABASE", raising=False)
    monkeypatch.setattr(Dashboard, "run", run)
    return run_pages


def run_command(*options: str) -> int | str | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["trainer", "dashboard", "--no-browser", *options])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "records"),
    [
        pytest.param([], False, id="shown"),
        pytest.param(["--record"], True, id="recorded"),
        pytest.param(["--database", "sqlite:////tmp/h.db", "--record", "-n", "team"], True, id="named"),
    ],
)
def test_history(options: list[str], records: bool, pages: list[Dashboard]) -> None:
    """The history of the user is shown, and recorded if they want that."""
    assert run_command(*options) in {None, 0}
    (page,) = pages
    assert page._past is not None
    assert (page._recording is not None) == records
    if page._recording is not None:
        assert page._recording.server == "https://cluster.test"
    assert page._options.namespace == ("team" if "team" in options else "")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "others"),
    [
        pytest.param([], {"far": " --context far", "my lab": " --context 'my lab'"}, id="current"),
        pytest.param(["--context", "far"], {"here": " --context here", "my lab": " --context 'my lab'"}, id="chosen"),
    ],
)
def test_other_clusters(
    options: list[str],
    others: dict[str, str],
    pages: list[Dashboard],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page has the commands that open the pages of the other contexts."""
    file = tmp_path / "config"
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("here", "far", "my lab")]
    file.write_text(json.dumps({"current-context": "here", "contexts": contexts}))
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert run_command(*options) in {None, 0}
    (page,) = pages
    shown = {each.name: each.command for each in page._options.others}
    assert shown == {name: f"trainer dashboard{ending}" for name, ending in others.items()}
