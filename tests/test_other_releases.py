"""Distributions of other releases are refused by name, with the remedy."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trainer.cli.app import app
from trainer.cli.errors import CommandError
from trainer.cli.kinds import installed_kinds
from trainer.cli.local.cluster import cluster_command
from trainer.cli.offline.v1_jobs import installed_v1_jobs
from trainer.cli.past import installed_history
from trainer.components import installed_components
from trainer.configuration.configuration import Configuration
from trainer.distributions import OWN, RELEASED_TOGETHER, OtherReleaseError, check_release
from trainer.kube.errors import ConfigurationError

ROOT = Path(__file__).parents[1]
MAJOR, MINOR = map(int, importlib.metadata.version(OWN).split(".")[:2])


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has pip say that all distributions beside ours are of a version."""
    installed = importlib.metadata.version

    def install(version: str) -> None:
        def answer(name: str) -> str:
            return version if name != OWN else installed(OWN)

        monkeypatch.setattr("trainer.distributions.version", answer)

    return install


def test_all_are_known() -> None:
    """The distributions of this repository, without the one that checks."""
    names = {path.parent.name.replace("_", "-") for path in ROOT.glob("packages/*/pyproject.toml")}
    assert {f"trainer-{name}" for name in names} == RELEASED_TOGETHER


@pytest.mark.parametrize("version", [f"{MAJOR}.{MINOR}.0", f"{MAJOR}.{MINOR}.17", f"{MAJOR}.{MINOR}"])
def test_same_minor_version(others: Callable[[str], None], version: str) -> None:
    """Patches may differ."""
    others(version)
    check_release("trainer-dashboard")


@pytest.mark.parametrize("version", [f"{MAJOR}.{MINOR + 1}.0", f"{MAJOR}.{MINOR - 1}.5", f"{MAJOR + 1}.{MINOR}.0"])
def test_another_minor_version(others: Callable[[str], None], version: str) -> None:
    """Both versions are named, and what to install."""
    others(version)
    expected = rf"trainer-dashboard {version} does not fit {OWN} .*: pip install 'trainer-dashboard>={MAJOR}.{MINOR},"
    with pytest.raises(OtherReleaseError, match=expected):
        check_release("trainer-dashboard")
    check_release("a-plugin")


@pytest.mark.parametrize(
    ("use", "error", "name"),
    [
        pytest.param(cluster_command, CommandError, "trainer-devcluster", id="dev cluster"),
        pytest.param(installed_kinds, CommandError, "trainer-sweeps", id="kinds"),
        pytest.param(installed_history, CommandError, "trainer-dashboard", id="history"),
        pytest.param(installed_v1_jobs, CommandError, "trainer-v1-jobs", id="v1 jobs"),
        pytest.param(
            lambda: installed_components(Configuration()), ConfigurationError, "trainer-sweeps", id="components"
        ),
    ],
)
def test_every_use_says_so(
    others: Callable[[str], None], use: Callable[[], object], error: type[Exception], name: str
) -> None:
    """Nothing of another release is imported, wherever it joins."""
    others(f"{MAJOR}.{MINOR + 1}.0")
    with pytest.raises(error, match=rf"{name} .* does not fit {OWN}"):
        use()


def test_command(others: Callable[[str], None]) -> None:
    """A command of another release ends with one line."""
    others(f"{MAJOR}.{MINOR + 1}.0")
    result = CliRunner().invoke(app, "dashboard")
    assert result.exit_code == 1
    assert f"trainer-dashboard {MAJOR}.{MINOR + 1}.0 does not fit" in result.stderr
    assert "trainer_dashboard" not in result.stderr
