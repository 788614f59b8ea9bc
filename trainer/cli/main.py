"""Entry point of the `trainer` command, small enough that Ctrl-C finds it ready from the first moment."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command and run it; Ctrl-C while it is still being loaded ends it quietly, too."""
    try:
        from trainer.cli.app import app  # noqa: PLC0415 - takes half a second
    except KeyboardInterrupt:
        sys.exit(130)
    _never_fail_to_encode()
    app(prog_name="trainer")


def _never_fail_to_encode() -> None:
    """Logs may hold any character, and the terminal may know few."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
