"""The combinations of Pythons and dependencies that are tested."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from hack.compatibility import __main__ as command
from hack.compatibility.__main__ import main
from hack.compatibility.combinations import (
    COMBINATIONS,
    OLDEST,
    ROOT,
    TESTED,
    TOOLS,
    Combination,
    commands,
)
from hack.compatibility.places import NoPythonError, interpreter, place_of
from hack.generate_oldest import direct
from hack.pins import pins
from hack.release.source import distributions

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def pinned(file: str) -> dict[str, Version]:
    """The versions in a file of constraints, by the normal form of names."""
    return {name: Version(version) for name, version in pins((ROOT / file).read_text()).items()}


def project(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return loaded


@pytest.mark.parametrize("requirement", direct())
def test_oldest_is_what_the_bound_says(requirement: str) -> None:
    """The file has the first release that a lower bound allows; `python -m hack.generate_oldest` writes it."""
    wanted = Requirement(requirement)
    oldest = pinned(OLDEST)[canonicalize_name(wanted.name)]
    lowest = max(Version(each.version) for each in wanted.specifier if each.operator in (">=", "=="))
    assert oldest in wanted.specifier
    assert oldest.release[: len(lowest.release)] == lowest.release


def test_oldest_has_one_bound_for_each() -> None:
    """All distributions that need a library name the same lower bound: nothing is tested with less than the highest."""
    names = [canonicalize_name(Requirement(each).name) for each in direct()]
    assert sorted(names) == sorted(set(names))


def test_tools_are_those_of_the_gate() -> None:
    """The tests run with the same tools, whose names the extra dev has as well."""
    oldest, tested = pinned(OLDEST), pinned(TESTED)
    assert {tool: oldest[tool] for tool in TOOLS} == {tool: tested[tool] for tool in TOOLS}
    dev = {Requirement(each).name for each in project(ROOT)["optional-dependencies"]["dev"]}
    assert set(TOOLS) <= dev


@pytest.mark.parametrize("folder", distributions(ROOT), ids=lambda folder: folder.name)
def test_classifiers(folder: Path) -> None:
    """Each distribution names the Pythons that are tested, and no other."""
    prefix = "Programming Language :: Python :: 3."
    named = [each.removeprefix(prefix) for each in project(folder)["classifiers"] if each.startswith(prefix)]
    assert [f"3.{minor}" for minor in named] == PYTHONS
    assert sorted({each.python for each in COMBINATIONS}) == PYTHONS


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda each: each.name)
def test_what_is_run(combination: Any) -> None:
    """An environment of its own, all distributions with the constraints, then unit and end-to-end tests that exist."""
    make, install, unit, end_to_end = commands(combination, "python3", "somewhere")
    assert make == ("python3", "-m", "venv", "somewhere")
    installed = {(ROOT / each.partition("[")[0]).resolve() for each in install}
    assert installed.issuperset(distributions(ROOT))
    constraints = install[install.index("--constraint") + 1] if "--constraint" in install else None
    assert constraints == combination.constraints
    paths = [each for each in (*unit, *end_to_end) if each.startswith(("tests", "packages", "e2e"))]
    assert all((ROOT / path).exists() for path in paths)


def test_this_python_is_found() -> None:
    """The interpreter of this process serves its own version, without a look elsewhere."""
    assert interpreter(f"{sys.version_info.major}.{sys.version_info.minor}") == sys.executable


def test_python_that_nobody_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with where it was looked for."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    message = r"Python 3\.2 is not on PATH, not in pyenv, and in no suite of Debian"
    with pytest.raises(NoPythonError, match=message), place_of("3.2"):
        pass


def test_nothing_was_tested(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without its Python fails where that is all that was asked for, and else ends with a warning."""

    def passes(combination: Combination) -> bool:
        if combination.name == "3.12":
            raise NoPythonError("nobody has it")
        return True

    monkeypatch.setattr(command, "passes", passes)
    assert main(["3.12"]) == 1
    assert main(["3.12", "oldest"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "error: 3.12 is not tested: nobody has it",
        "warning: 3.12 is not tested: nobody has it",
    ]


@pytest.mark.parametrize("names", [[], ["3.2"], ["oldest", "latest"]], ids=str)
def test_unknown_names(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command names what it knows."""
    assert main(names) == 2
    assert capsys.readouterr().err == "usage: python -m hack.compatibility [3.12|3.13|3.14|oldest|newest] ...\n"
