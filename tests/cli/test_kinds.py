"""What a command line names, and what it says of kinds that are not installed; sweeps have tests of their own."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trainer.cli import kinds
from trainer.cli.app import app
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.kinds import named

SWEEP = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: OptimizationJob
metadata: {name: digits}
spec: {}
"""
MISSING = "sweeps are not installed: pip install 'trainer-operator[sweeps]'"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("a b a", ["a", "b"], id="TrainJobs"),
        pytest.param("a tj/a", ["a"], id="twice"),
        pytest.param("trainjob/a tj/b", ["a", "b"], id="TrainJobs with their kind"),
        pytest.param("trainjob a b", ["a", "b"], id="their kind once"),
        pytest.param("trainjob", ["trainjob"], id="a TrainJob of this name"),
        pytest.param("sweep a b", ["sweep/a", "sweep/b"], id="sweeps"),
        pytest.param("Sweep/a b OptJob/a", ["sweep/a", "b"], id="both"),
        pytest.param("sweeps", [], id="a kind alone"),
        pytest.param("a sweep", ["a", "sweep"], id="the kind comes first"),
        pytest.param("sweep sweep", ["sweep/sweep"], id="of the name of its kind"),
    ],
)
def test_named(words: str, found: list[str]) -> None:
    """An object is named as for kubectl, each once."""
    assert (
        list(dict.fromkeys(f"sweep/{each.name}" if each.kind else each.name for each in named(words.split()))) == found
    )


@pytest.mark.parametrize("word", ["job/a", "/a", "a/b/c"])
def test_no_such_kind(word: str) -> None:
    """A kind that nobody knows is refused with what can be written."""
    with pytest.raises(BadInputError, match=r"there is no kind .*: write NAME of a TrainJob, or trainjob/NAME"):
        named([word])


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only trainer-operator is installed."""
    monkeypatch.setattr(kinds, "entry_points", lambda group: ())
    monkeypatch.chdir(tmp_path)
    Path("sweep.yaml").write_text(SWEEP)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "arguments", ["get sweep digits", "explain sweep/digits", "delete sweeps a b", "render -f sweep.yaml"]
)
def test_not_installed(arguments: str) -> None:
    """Whoever asks for a sweep is told the extra, whatever the command."""
    result = CliRunner().invoke(app, arguments)

    assert (result.exit_code, result.stderr) == (1, f"error: {MISSING}\n")


@pytest.mark.usefixtures("bare")
def test_lint_without_the_extra() -> None:
    """What cannot be checked is a warning."""
    result = CliRunner().invoke(app, "lint -f sweep.yaml")

    said = f"sweep.yaml, document 1 (OptimizationJob digits): warning: is not checked: {MISSING}\n"
    assert (result.exit_code, result.stdout) == (0, said)


@pytest.mark.usefixtures("bare")
def test_a_name_without_the_extra() -> None:
    """Where there are no sweeps, one word is always a TrainJob."""
    assert [each.name for each in named(["sweep"])] == ["sweep"]


def test_a_kind_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with the reason."""
    broken = EntryPoint("broken", "no_such_module:Kind", "trainer.kinds")
    monkeypatch.setattr(kinds, "entry_points", lambda group: (broken,))

    with pytest.raises(CommandError, match="the kinds of no_such_module:Kind cannot be loaded: No module named"):
        named(["sweep", "a"])
