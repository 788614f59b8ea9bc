"""Entry point of the `trainer` command; small, so that it handles Ctrl-C at once."""

from __future__ import annotations

import io
import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

_FILES, _NO_FILES = ":0", ":4"
"""Directives of Cobra: complete names of files, or do not."""


def main() -> None:
    """Load the command and run it, as `trainer` or as plugin of kubectl; Ctrl-C while it loads ends it quietly."""
    try:
        from trainer.cli.app import app  # noqa: PLC0415 - takes longer than this module
    except KeyboardInterrupt:
        sys.exit(130)
    _never_fail_to_encode()
    app(prog_name="kubectl trainer" if Path(sys.argv[0]).name == "kubectl-trainer" else "trainer")


def complete_for_kubectl() -> None:
    """Answer kubectl's request to complete `kubectl trainer ARGS`, whose last word is incomplete.

    kubectl finds `kubectl_complete-trainer` by its name and expects the answers of Cobra: a line for each value, and a
    directive.
    """
    from trainer.cli.app import app  # noqa: PLC0415 - takes longer than this module

    words = ["trainer", *sys.argv[1:]]
    typed = shlex.join(words) if words[-1] else shlex.join(words[:-1]) + " "
    # The protocol of Typer for fish is one value in a line, and its help after a tab: that of Cobra.
    os.environ |= {
        "_TRAINER_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": typed,
    }
    answer = io.StringIO()
    try:
        with redirect_stdout(answer):
            app(prog_name="trainer")
    finally:
        values = answer.getvalue().strip()
        sys.stdout.write(f"{values}\n{_NO_FILES}\n" if values else f"{_FILES}\n")


def _never_fail_to_encode() -> None:
    """Escape the characters of logs that the terminal cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
