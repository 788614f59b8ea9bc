"""The redirect file: an HTML page that only the user can read, and that redirects their browser to an address.

The command line of a browser can be read by every account of the machine. It has the path of the file, and not the
secret in the address.
"""

from __future__ import annotations

import html
import os
import threading
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from trainer.cli.console import note

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={address}">
<title>TrainJobs</title>
<p><a href="{address}">Open the dashboard</a></p>
"""


class RedirectFile:
    """Opens an address in the user's browser, by way of a file that is removed when it is used, and at the end."""

    def __init__(self) -> None:
        self._directory: TemporaryDirectory[str] | None = None
        self._is_used = threading.Event()

    def __enter__(self) -> Self:
        self._directory = _directory()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
        if self._directory is not None:
            self._directory.cleanup()

    def open_in_browser(self, address: str) -> None:
        """Open an address; a note says if that fails."""
        # Browsers of the terminal run until they are closed, and nothing waits for a daemon at the end.
        threading.Thread(target=self._run, args=(address,), name="browser", daemon=True).start()

    def remove(self) -> None:
        """Have the file removed, which is not needed any more; does not block."""
        self._is_used.set()

    def _run(self, address: str) -> None:
        try:
            is_open = self._directory is not None and webbrowser.open(_file(Path(self._directory.name), address))
        except (OSError, webbrowser.Error):
            is_open = False
        if not is_open:
            note("no browser could be opened: open the address yourself")
        self._is_used.wait()
        if self._directory is not None:
            self._directory.cleanup()


def _directory() -> TemporaryDirectory[str] | None:
    """A directory that only the user can enter; None if there can be none.

    Browsers in a sandbox, such as those of Ubuntu, see the files of the home directory and not those of /tmp.
    """
    for place in (Path.home, lambda: None):
        try:
            return TemporaryDirectory(prefix="trainer-dashboard-", dir=place(), ignore_cleanup_errors=True)
        except (OSError, RuntimeError):  # there is no home directory, or it is not writable
            continue
    return None


def _file(directory: Path, address: str) -> str:
    path = directory / "open.html"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(_PAGE.format(address=html.escape(address)))
    return path.as_uri()
