"""The distribution of the dev cluster beside that of the manager."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import trainer
import trainer_devcluster

ROOT = Path(__file__).parents[3]


def project(folder: str) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return loaded


def test_versions_fit() -> None:
    """Both have one version, and each requires the other of this minor version: the machinery changes with the next."""
    assert trainer_devcluster.__version__ == trainer.__version__
    major, minor, _ = (int(part) for part in trainer.__version__.split("."))
    bounds = f">={major}.{minor},<{major}.{minor + 1}"
    assert f"trainer-operator{bounds}" in project("packages/devcluster")["dependencies"]
    assert project(".")["optional-dependencies"]["cluster"] == [f"trainer-devcluster{bounds}"]


def test_licence() -> None:
    """Its wheel contains the licence that the repository has."""
    assert project("packages/devcluster")["license-files"] == ["LICENSE"]
    assert (ROOT / "packages/devcluster/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
