"""Checkpoints in a directory: what is complete, what stays, and whose it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer.checkpoints import store


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def write(directory: Path, step: int, text: str = "") -> None:
    with store.begin(directory, step) as path:
        (path / "state").write_text(text or str(step))


@pytest.mark.parametrize(
    ("entries", "patterns", "expected"),
    [
        pytest.param([], store.STEPS, None, id="empty"),
        pytest.param(["step-9/", "step-10/"], store.STEPS, (10, "step-10"), id="by-number"),
        pytest.param(["step-1/", ".partial-step-2/"], store.STEPS, (1, "step-1"), id="half-written"),
        pytest.param([".deleted-step-2/"], store.STEPS, None, id="half-deleted"),
        pytest.param([".replaced-step-2/"], store.STEPS, (2, ".replaced-step-2"), id="ended-while-replaced"),
        pytest.param([".replaced-step-2/", "step-2/"], store.STEPS, (2, "step-2"), id="replaced"),
        pytest.param(
            ["step-3", "step-/", "step-x/", "step--1/", "astep-4/", "step-5b/"], store.STEPS, None, id="others"
        ),
        pytest.param([f"step-{'9' * 30}/"], store.STEPS, None, id="no-number-of-a-step"),
        pytest.param(["checkpoint-7/", "step-3/"], ("checkpoint-*", "step-*"), (7, "checkpoint-7"), id="frameworks"),
        pytest.param(["epoch=1-step=8.ckpt/"], ("epoch=1-step=*.ckpt",), (8, "epoch=1-step=8.ckpt"), id="characters"),
    ],
)
def test_newest(
    entries: list[str], patterns: tuple[str, ...], expected: tuple[int, str] | None, tmp_path: Path
) -> None:
    """The newest checkpoint is the directory of the highest step that has its name."""
    for entry in entries:
        (tmp_path / entry).mkdir() if entry.endswith("/") else (tmp_path / entry).touch()
    found = store.newest(tmp_path, patterns)
    assert found == (None if expected is None else (expected[0], tmp_path / expected[1]))


def test_no_directory(tmp_path: Path) -> None:
    """Where nothing can be read there is no checkpoint."""
    assert store.newest(tmp_path / "absent") is None


def test_a_checkpoint(tmp_path: Path) -> None:
    """A checkpoint has its name once all of it is written."""
    with store.begin(tmp_path, 4) as path:
        (path / "state").write_text("x")
        assert store.newest(tmp_path) is None
    assert names(tmp_path) == ["step-4"]
    assert names(tmp_path / "step-4") == ["state"]


def test_a_failure(tmp_path: Path) -> None:
    """A checkpoint that fails leaves the former one, and nothing else."""
    write(tmp_path, 4)
    with pytest.raises(IsADirectoryError), store.begin(tmp_path, 5) as path:
        path.write_text("half")
    assert names(tmp_path) == ["step-4"]


def test_leftovers(tmp_path: Path) -> None:
    """What processes have left that ended in the middle goes with the next checkpoint; what was complete stays."""
    for name in (".partial-step-6", ".deleted-step-1", ".replaced-step-5", ".replaced-step-2", "step-2"):
        (tmp_path / name).mkdir()
    write(tmp_path, 6)
    assert names(tmp_path) == ["step-2", "step-5", "step-6"]


def test_the_same_step(tmp_path: Path) -> None:
    """A checkpoint gives way to another one of its step."""
    write(tmp_path, 4, "old")
    write(tmp_path, 4, "new")
    assert names(tmp_path) == ["step-4"]
    assert (tmp_path / "step-4" / "state").read_text() == "new"


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        pytest.param(2, ["checkpoint-1", "step-10", "step-9"], id="newest"),
        pytest.param(9, ["checkpoint-1", "step-10", "step-8", "step-9"], id="all"),
        pytest.param(0, ["checkpoint-1", "step-10"], id="at-least-one"),
    ],
)
def test_retention(keep: int, expected: list[str], tmp_path: Path) -> None:
    """The newest checkpoints stay, with all that is no checkpoint."""
    (tmp_path / "checkpoint-1").mkdir()
    for step in (8, 9, 10):
        write(tmp_path, step)
    store.prune(tmp_path, keep)
    assert names(tmp_path) == expected


@pytest.mark.parametrize("link", [pytest.param(os.link, id="links"), pytest.param(None, id="no-links")])
def test_owner(link: Callable[..., None] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first training that claims a directory has it; one that has no name claims none."""

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", link or refused)
    assert store.claim(tmp_path, "") == ""
    assert store.claim(tmp_path, "team/a") == "team/a"
    assert store.claim(tmp_path, "team/b") == "team/a"
    assert store.claim(tmp_path, "") == "team/a"
    assert names(tmp_path) == [store.OWNER]
