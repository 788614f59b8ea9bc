"""`trainer plugins new`: what it makes works as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.docs.markdown import DOCS, blocks
from tests.framework.plugin_package import installed
from trainer.cli.app import app

CACHES = {"PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The directory of a new plugin."""
    target = tmp_path / "trainer-greeting"
    result = CliRunner().invoke(app, ["plugins", "new", "greeting", "--directory", str(target)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert str(target / "pyproject.toml") in result.stdout.splitlines()
    return target


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(["pytest", "-q", "-p", "no:cacheprovider"], r"^3 passed", id="tests"),
        pytest.param(["mypy"], "^Success: no issues found in 3 source files", id="types"),
        pytest.param(["ruff", "check", "--select", "E,F,I", "--no-cache"], "^All checks passed", id="order of imports"),
    ],
)
def test_it_passes_as_it_stands(made: Path, command: list[str], said: str) -> None:
    """Its tests pass and its types are right before anybody has changed a line, without an installation."""
    pytest.importorskip(command[0], reason=f"{command[0]} is not installed here")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=made, env=os.environ | CACHES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert re.search(said, done.stdout, re.MULTILINE)


def test_the_manager_uses_it(made: Path, tmp_path: Path) -> None:
    """The entry point leads to the class, under the name that the class has."""
    source = (made / "src" / "trainer_greeting" / "plugin.py").read_text()
    project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {"trainer.plugins": {"greeting": "trainer_greeting.plugin:GreetingPlugin"}}
    with installed(tmp_path, greeting=(source, "GreetingPlugin")):
        listed = json.loads(CliRunner().invoke(app, "plugins -o json").stdout)
    [ours] = [plugin for plugin in listed if plugin["name"] == "greeting"]
    assert (ours["enabled"], ours["hooks"]) == (True, ["EnforceMLPolicy"])


def test_the_page_begins_with_it(made: Path) -> None:
    """The first example of the page for authors is what the command makes, in about 25 lines."""
    source = (made / "src" / "trainer_greeting" / "plugin.py").read_text()
    plugin, test = [block.text for block in blocks(DOCS / "write-a-plugin.md") if block.language == "python"][:2]
    assert plugin == source
    assert test in (made / "tests" / "test_plugin.py").read_text()
    assert len([line for line in source.splitlines() if line]) <= 25


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("Team", "error: NAME: must be words of lower-case letters", id="case"),
        pytest.param("../team", "error: NAME: must be words of lower-case letters", id="path"),
        pytest.param("a" * 41, "at most 40 characters", id="long"),
        pytest.param("operator", "error: NAME: trainer-operator is a distribution of ours", id="distribution"),
        pytest.param("torch", "error: NAME: there is a built-in plugin torch", id="built-in"),
    ],
)
def test_names_that_cannot_be(name: str, problem: str, tmp_path: Path) -> None:
    """Nothing is written for a name that no plugin can have."""
    result = CliRunner().invoke(app, ["plugins", "new", name, "--directory", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert problem in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(made: Path) -> None:
    """A directory that is there stays as it is."""
    (made / "README.md").write_text("mine")
    result = CliRunner().invoke(app, ["plugins", "new", "greeting", "--directory", str(made)])
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: {made}: is there already, and stays as it is: name another --directory\n",
    )
    assert (made / "README.md").read_text() == "mine"
