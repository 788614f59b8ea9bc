"""The git revision of code that is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.run.test_code_source import git
from trainer.cli.run.revision import revision_of

SENT = ("train.py", "lib/model.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a repository with one commit."""
    git(tmp_path, "init", "--quiet")
    folder = tmp_path.resolve() / "project"
    for name in (*SENT, "notes.md"):
        write(folder, name)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "x")
    return folder


def write(folder: Path, name: str, text: str = "1") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("change", "is_dirty"),
    [
        pytest.param(lambda folder: None, False, id="as-committed"),
        pytest.param(lambda folder: write(folder, "lib/model.py", "2"), True, id="changed"),
        pytest.param(lambda folder: write(folder, "notes.md", "2"), False, id="not-sent-and-changed"),
        pytest.param(lambda folder: write(folder, "model.bin"), False, id="not-sent-and-new"),
        pytest.param(lambda folder: write(folder, "../other/train.py"), False, id="elsewhere"),
        pytest.param(lambda folder: (folder / "lib/model.py").unlink(), True, id="deleted"),
        pytest.param(lambda folder: git(folder, "rm", "--quiet", "--cached", "train.py"), True, id="not-tracked"),
        pytest.param(lambda folder: git(folder, "rm", "--quiet", "-r", "--cached", "lib"), True, id="new-folder"),
    ],
)
def test_revision(folder: Path, change: Callable[[Path], object], is_dirty: bool) -> None:
    """Code that is not as the commit has it says so; what is not sent does not count."""
    commit = git(folder, "rev-parse", "HEAD")
    change(folder)
    assert revision_of(folder, SENT) == commit + ("-dirty" if is_dirty else "")


def test_hook(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The repository is that of the folder, also where git runs the command for another one."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    assert revision_of(folder, SENT) == git_head(folder)


def git_head(folder: Path) -> str:
    """The commit, as a file of git has it."""
    (reference,) = (folder.parent / ".git/refs/heads").iterdir()
    return reference.read_text().strip()


@pytest.mark.parametrize("state", ["no-repository", "no-commit", "no-git"])
def test_nothing_to_say(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """Without a revision nothing is said, and nothing fails."""
    if state == "no-git":
        monkeypatch.setenv("PATH", str(tmp_path))
        assert revision_of(folder, SENT) == ""
        return
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    if state == "no-commit":
        git(other, "init", "--quiet")
    assert revision_of(other, SENT) == ""
