"""`trainer plugins`: what is installed, and what the manager uses of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.configurations import write
from tests.framework.plugin_package import GREETING, installed
from trainer.cli.app import app


def rows(output: str) -> list[list[str]]:
    """The cells of a table."""
    return [re.split(r" {3,}", line) for line in output.splitlines()]


def test_table(tmp_path: Path) -> None:
    """Each plugin has a row with its origin, the extension points that it takes part in, and whether it is enabled."""
    with installed(tmp_path, greeting=(GREETING, "Greeting")):
        result = CliRunner().invoke(app, "plugins")

    assert (result.exit_code, result.stderr) == (0, "")
    header, *table = rows(result.stdout)
    assert header == ["NAME", "ORIGIN", "ENABLED", "HOOKS"]
    assert ["greeting", "acme-trainer 1.2.0", "yes", "EnforceMLPolicy"] in table
    assert ["torch", "built in", "yes", "WatchExtension, CustomValidation, EnforceMLPolicy, ComponentBuilder"] in table
    assert [row[0] for row in table] == sorted(row[0] for row in table)


def test_disabled(tmp_path: Path) -> None:
    """The hooks of a disabled plugin are not known, because its code is not imported; it may even be broken."""
    write(tmp_path / "manager.yaml", "plugins: {disabled: [greeting, jax]}")
    with installed(tmp_path, greeting=("import no_such_library", "Greeting")):
        result = CliRunner().invoke(app, f"plugins --config {tmp_path / 'manager.yaml'}")

    assert (result.exit_code, result.stderr) == (0, "")
    assert ["greeting", "acme-trainer 1.2.0", "no", "-"] in rows(result.stdout)
    assert ["jax", "built in", "no", "-"] in rows(result.stdout)


def test_json(tmp_path: Path) -> None:
    """Programs get package and version apart; built-in plugins have none."""
    with installed(tmp_path, greeting=(GREETING, "Greeting")):
        result = CliRunner().invoke(app, "plugins -o json")

    listed = {plugin["name"]: plugin for plugin in json.loads(result.stdout)}
    assert listed["greeting"] == {
        "name": "greeting",
        "origin": "acme-trainer 1.2.0",
        "package": "acme-trainer",
        "version": "1.2.0",
        "hooks": ["EnforceMLPolicy"],
        "enabled": True,
    }
    assert (listed["jax"]["origin"], listed["jax"]["package"]) == ("built in", None)


@pytest.mark.parametrize(
    ("source", "configuration", "complaint"),
    [
        pytest.param(
            "import no_such_library", "", "plugin greeting (acme-trainer 1.2.0) cannot be imported", id="broken"
        ),
        pytest.param(
            GREETING, "plugins: {disabled: [jobset]}", "a TerminalCondition no TrainJob would", id="no builder"
        ),
        pytest.param(GREETING, "plugins: {enabled: [x]}", "plugins.enabled[0]: Unsupported value", id="unknown"),
        pytest.param(
            GREETING,
            "plugins: {configuration: {greeting: {x: 1}}}",
            "plugins.configuration[greeting].x: ",
            id="setting",
        ),
    ],
)
def test_the_manager_would_not_start(tmp_path: Path, source: str, configuration: str, complaint: str) -> None:
    """The table shows what there is, and standard error why the manager would not start, with exit code 2."""
    write(tmp_path / "manager.yaml", configuration)
    with installed(tmp_path, greeting=(source, "Greeting")):
        result = CliRunner().invoke(app, f"plugins --config {tmp_path / 'manager.yaml'}")

    assert result.exit_code == 2
    assert "greeting" in [row[0] for row in rows(result.stdout)]
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert complaint in result.stderr
