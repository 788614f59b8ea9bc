"""The distributions below packages/ beside trainer-operator."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from packaging.version import InvalidVersion, Version

import trainer

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))


def project(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return loaded


def bounds() -> str:
    major, minor, _ = (int(part) for part in trainer.__version__.split("."))
    return f">={major}.{minor},<{major}.{minor + 1}"


each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@each_folder
def test_version_fits(folder: Path) -> None:
    """All have one version, and require the others of this minor version: what they share changes with the next."""
    module = import_module(f"trainer_{folder.name}")
    assert module.__version__ == trainer.__version__
    ours = [each for each in project(folder)["dependencies"] if each.startswith("trainer-")]
    assert f"trainer-operator{bounds()}" in ours
    assert all(each.endswith(bounds()) for each in ours)


@each_folder
def test_extra_brings_it(folder: Path) -> None:
    """An extra of trainer-operator brings it, of the same minor version."""
    extras = project(ROOT)["optional-dependencies"].values()
    wanted = re.compile(re.escape(project(folder)["name"]) + r"(\[\w+\])?" + re.escape(bounds()))
    assert any(wanted.fullmatch(each) for extra in extras for each in extra)


@pytest.mark.parametrize("folder", [ROOT, *FOLDERS], ids=lambda folder: folder.name)
def test_no_extra_has_the_name_of_a_version(folder: Path) -> None:
    """pip 24.1 to 25.3 compares such a name with each other extra as versions, and fails: the others are none."""
    for extra in project(folder).get("optional-dependencies", {}):
        with pytest.raises(InvalidVersion):
            Version(extra)


@each_folder
def test_licence(folder: Path) -> None:
    """Its wheel contains the licence that the repository has."""
    assert project(folder)["license-files"] == ["LICENSE"]
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@each_folder
def test_is_typed(folder: Path) -> None:
    """Type checkers of its users read its annotations."""
    assert (folder / "src" / f"trainer_{folder.name}" / "py.typed").exists()
