"""Entry point of the `trainer` command; small, so that it handles Ctrl-C at once."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command and run it; Ctrl-C while it loads ends it quietly."""
    try:
        from trainer.cli.app import app  # noqa: PLC0415 - takes half a second
    except KeyboardInterrupt:
        sys.exit(130)
    _never_fail_to_encode()
    app(prog_name="trainer")


def _never_fail_to_encode() -> None:
    """Escape the characters of logs that the terminal cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
