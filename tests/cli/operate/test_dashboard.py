"""`trainer dashboard`."""

from __future__ import annotations

import re
import threading
import webbrowser
from typing import TYPE_CHECKING

import pytest

from trainer.cli.main import main
from trainer.dashboard.server import Dashboard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "opens", "says"),
    [
        pytest.param([], True, "", id="browser"),
        pytest.param([], False, "note: no browser could be opened", id="no-browser-there"),
        pytest.param(["--no-browser"], None, "", id="no-browser-wanted"),
    ],
)
def test_addresses(
    options: list[str],
    opens: bool | None,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The terminal shows the token, and the browser is opened with the code that works once."""
    opened: list[str] = []

    def open_browser(url: str) -> bool:
        opened.append(url)
        return bool(opens)

    async def run(page: Dashboard, *, started: Callable[[], Awaitable[None]]) -> None:
        await started()

    monkeypatch.setattr(webbrowser, "open", open_browser)
    monkeypatch.setattr(Dashboard, "run", run)
    monkeypatch.setattr("sys.argv", ["trainer", "dashboard", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in {None, 0}
    for thread in threading.enumerate():
        if thread.name == "browser":
            thread.join(10)
    printed = capsys.readouterr()
    token = re.fullmatch(r"dashboard: http://127\.0\.0\.1:0/#token=(\S{40,})\n", printed.out)
    assert token is not None, printed.out
    assert says in printed.err
    assert len(opened) == (opens is not None)
    assert all("#code=" in url and token[1] not in url for url in opened)
