"""Programs that publish, and what is said where one is missing or fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

_SOURCES: Final = {
    "cosign": "https://docs.sigstore.dev/cosign/system_config/installation/",
    "gh": "https://cli.github.com",
    "skopeo": "apt-get install skopeo",
}


class PublishError(RuntimeError):
    """Something cannot be published; the message says what to do."""


def require(*programs: str) -> None:
    """Make sure that programs are on PATH.

    Raises:
        PublishError: one is not.
    """
    for program in programs:
        if shutil.which(program) is None:
            raise PublishError(f"{program} is not on PATH: {_SOURCES[program]}")


def variable(name: str, purpose: str) -> str:
    """Give a variable of the environment.

    Raises:
        PublishError: it is not set, or empty.
    """
    value = os.environ.get(name, "")
    if not value:
        raise PublishError(f"the variable {name} is not set: it names {purpose}")
    return value


def run(*command: str, stdin: str | None = None, environment: Mapping[str, str] | None = None) -> None:
    """Run a program that says on its own what it does.

    Raises:
        PublishError: it failed.
    """
    sys.stderr.write(f"+ {' '.join(command)}\n")
    done = subprocess.run(command, input=stdin, text=True, env=os.environ | (environment or {}), check=False)
    if done.returncode:
        raise PublishError(f"{' '.join(command[:2])} ended with exit code {done.returncode}")


def answer(*command: str) -> tuple[str, str]:
    """Give what a program prints, and its complaint: empty where it succeeded."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stdout, done.stderr.strip() or f"exit code {done.returncode}"
    return done.stdout, ""
