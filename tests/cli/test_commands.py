"""The list of subcommands, and those that other distributions add to `trainer`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hack.reference.command_line import commands
from trainer.cli import app as application
from trainer.cli.app import app
from trainer.cli.commands import COMMANDS, OF_EXTRAS, Panel

PROGRAM = """
import typer

app = typer.Typer(rich_help_panel="Tuning")


@app.command()
def tune(trials: int = 3) -> None:
    "Try several learning rates."
    print(f"{trials} trials")


group = typer.Typer(help="What was tried.")


@group.command("list")
def list_tunings() -> None:
    "List tunings."
    print("none")


@group.command()
def show() -> None:
    "Show a tuning."
"""
ENTRIES = """
[trainer.commands]
tune = added_commands:app
tunings = added_commands:group
broken = added_commands:nothing
"""


def test_summaries() -> None:
    """The help lists what the commands themselves say first."""
    told = {name: (command.help or "").partition("\n\n")[0] for name, command in commands().items() if " " not in name}
    assert {name: listed.summary for name, listed in (COMMANDS | OF_EXTRAS).items()} == told


def test_the_list_loads_no_command() -> None:
    """The help of `trainer` imports neither the commands nor the models and the client that they need."""
    program = "import sys; from trainer.cli.app import app\ntry: app(['-h'])\nfinally: print('modules:', *sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = set(shown.partition("modules:")[2].split())
    ours = {name for name in loaded if name.startswith("trainer")}
    light = {"trainer.cli.app", "trainer.cli.commands", "trainer.cli.errors", "trainer.distributions"}
    assert ours == {"trainer", "trainer.cli", *light}
    assert not {"pydantic", "aiohttp", "yaml"} & loaded


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution that adds three subcommands, one of which cannot be loaded."""
    (tmp_path / "added_commands.py").write_text(PROGRAM)
    metadata = tmp_path / "trainer_tuning-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: trainer-tuning\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    application._installed.cache_clear()
    yield
    application._installed.cache_clear()
    sys.modules.pop("added_commands", None)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


@pytest.mark.usefixtures("installed")
def test_added_commands() -> None:
    """They run as those of this distribution, as single commands and as groups."""
    assert run("tune", "--trials", "5") == (0, "5 trials\n")
    assert run("tunings", "list") == (0, "none\n")


@pytest.mark.usefixtures("installed")
def test_help() -> None:
    """The help has them in their own panel, or in that of other distributions, and says what cannot be loaded."""
    code, text = run("--help")
    assert code == 0
    sections = {part.partition(" ─")[0]: part for part in text.split("╭─ ")}
    assert "│ tune " in sections["Tuning"]
    others = sections[Panel.OTHER]
    assert "│ tunings " in others
    assert "│ broken " in others
    assert "trainer-tuning cannot be loaded" in " ".join(others.replace("│", " ").split())


@pytest.mark.usefixtures("installed")
def test_a_command_that_cannot_be_loaded() -> None:
    """It fails with the distribution and the reason, and harms no other."""
    code, text = run("broken")
    assert code == 1
    assert "the command broken of trainer-tuning cannot be loaded: module 'added_commands' has no attribute" in text


@pytest.mark.parametrize("command", OF_EXTRAS)
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """The commands of our own distributions say how to install them: by an extra that there is."""
    monkeypatch.setattr(application, "_installed", dict)
    code, text = run(command)
    said = re.fullmatch(rf"error: {command} is not installed: pip install 'trainer-operator\[(.+)\]'\n", text)
    assert code == 1
    assert said is not None
    assert said[1] in (metadata("trainer-operator").get_all("Provides-Extra") or ())


def test_a_misspelt_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for one of an extra."""
    monkeypatch.setattr(application, "_installed", dict)
    assert "No such command 'dashbord'" in run("dashbord")[1]
