"""Repositories with one commit of a small project."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from hack.release.source import RUNBOOKS

EPOCH = 1_700_000_000
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "trainer-operator"
version = "1.2.3"
description = "Small"
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.11"
dependencies = ["msgspec>=0.20"]

[tool.hatch.build.targets.wheel]
packages = ["trainer"]
"""
FILES = {
    "README.md": "# Small\n\nSee [the page](docs/page.md#there).\n",
    "LICENSE": "",
    "charts/kubeflow-trainer/values.yaml": f"runbooks: {RUNBOOKS}\n",
    "config/prometheus/runbooks.yaml": f"data:\n  page: {RUNBOOKS}\n",
    "docs/page.md": "# There\n",
    "pyproject.toml": PROJECT,
    "trainer/__init__.py": '__version__ = "1.2.3"\n',
}


def commit(root: Path, files: Mapping[str, str] = FILES) -> Path:
    """Make a repository of some files, all of them committed at EPOCH, and give it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    date = f"{EPOCH} +0000"
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*who, "commit", "--quiet", "--date", date, "--message", "a"],
    ):
        subprocess.run(
            ["git", "-C", root, *command], check=True, env={"GIT_COMMITTER_DATE": date, "PATH": "/usr/bin:/bin"}
        )
    return root
