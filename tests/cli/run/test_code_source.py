"""Code of git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.code_source import GitCode, git_code

COMMIT = "0123456789" * 4


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, the branch main and the annotated tag v1."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "train.py").write_text("print('from git')")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "x")
    git(tmp_path, "tag", "-a", "v1", "-m", "x")
    return tmp_path


@pytest.mark.parametrize("revision", ["main", "v1"])
def test_revision(repository: Path, revision: str) -> None:
    """A branch or tag becomes the commit that it is now."""
    url = f"file://{repository}"
    assert git_code(f"git+{url}@{revision}") == GitCode(url, git(repository, "rev-parse", "HEAD"))


def test_commit() -> None:
    """A commit needs no look-up."""
    assert git_code(f"git+https://example.com/a@{COMMIT}") == GitCode("https://example.com/a", COMMIT)


def test_unknown_revision(repository: Path) -> None:
    """A revision that does not exist is reported with the remedy."""
    with pytest.raises(BadInputError, match=r"has no branch or tag v2.*: write the commit"):
        git_code(f"git+file://{repository}@v2")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        pytest.param(f"https://example.com/a@{COMMIT}", "must be git\\+https", id="no git"),
        pytest.param(f"git+ext::sh@{COMMIT}", "must be git\\+https", id="a command"),
        pytest.param(f"git+https://u:hidden@example.com/a@{COMMIT}", "no user or password", id="password"),
        pytest.param("git+https://example.com/a@--upload-pack=x", "is no revision", id="an option"),
    ],
)
def test_wrong_reference(reference: str, problem: str) -> None:
    """What is not a revision of a repository is refused; a password is not repeated."""
    with pytest.raises(BadInputError, match=problem) as caught:
        git_code(reference)
    assert "hidden" not in str(caught.value)
