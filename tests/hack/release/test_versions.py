"""The version, in all files that name it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import trainer
from hack.release.settings import ROOT
from hack.release.versions import current, former, set_version

OTHER = "37.41.43"
BOUNDS = "trainer-[a-z-]+(\\[[a-z]+\\])?>="
OF_OTHERS = (
    "CHANGELOG.md",
    "constraints",
    "docs/releases.md",
    "e2e/upgrades/",
    "hack/",
    "images/",
    "tests/hack/release/test_notes.py",
    "tests/hack/release/test_versions.py",
)
"""Where files have versions of others, or say when something came."""
LOCKED = ("package-lock.json", "requirements.txt")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of all files that can name the version or the bounds that follow from it."""
    version = re.escape(trainer.__version__)
    command = ["git", "grep", "--name-only", "-I", "--extended-regexp", f"{version}|{BOUNDS}", "--", "."]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in listed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for arguments in (["init", "--quiet"], ["add", "--all", "--force"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_no_place_is_left_out(checkout: Path) -> None:
    """Nothing names the old version, distributions want each other in the new one, and the way back is the same."""
    before = texts(checkout)
    old = re.compile(rf"(?<![\d.]){re.escape(trainer.__version__)}(?!\.?\d)")
    major, minor, _ = trainer.__version__.split(".")

    changed = set_version(OTHER, checkout)

    assert current(checkout) == OTHER
    assert "pyproject.toml" in changed
    after = texts(checkout)
    left = [
        f"{name}: {line}"
        for name, text in after.items()
        if not name.startswith(OF_OTHERS) and not name.endswith(LOCKED)
        for line in text.splitlines()
        if old.search(line) or re.search(rf"{BOUNDS}{major}\.{minor}\b", line)
    ]
    assert left == []
    assert "trainer-devcluster>=37.41,<37.42" in after["pyproject.toml"]
    set_version(trainer.__version__, checkout)
    assert texts(checkout) == before


def texts(root: Path) -> dict[str, str]:
    """Of all files."""
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in files}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("0.2.0", "0.1.3", id="newest-patch"),
        pytest.param("0.3.0", "0.2.10", id="by-number"),
        pytest.param("0.2.11", "0.1.3", id="of-a-patch"),
        pytest.param("1.0.0", "0.9.0", id="major"),
        pytest.param("1.1.0", "1.0.0", id="after-major"),
    ],
)
def test_former(version: str, expected: str) -> None:
    """It is the newest one of an earlier minor version, wherever the changelog has it."""
    assert former(version, ["1.0.0", "0.9.0", "0.2.10", "0.2.9", "0.1.0", "0.1.3"]) == expected


def test_no_former() -> None:
    """The first minor version has none, and the error names what is looked for."""
    with pytest.raises(ValueError, match=r"CHANGELOG\.md: no minor version before 0\.1\.1 has a section"):
        former("0.1.1", ["0.1.0"])


@pytest.mark.parametrize("version", ["v0.3.0", "0.3", "0.3.0.1", "01.2.3", "next"])
def test_no_version(version: str, tmp_path: Path) -> None:
    """What is no version is refused before anything is written."""
    with pytest.raises(ValueError, match=f"{re.escape(version)} is no version"):
        set_version(version, tmp_path)
