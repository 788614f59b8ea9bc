"""Runs of the end-to-end tests in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.parts import VARIABLE, Part

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_parts_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last part knows what all have run, and what has not passed."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Part({"a.py", "b.py"}, ["a.py::test was skipped"]).leave()
    Part({"b.py"}).leave()
    last = Part({"c.py"}, ["c.py::test was failed"]).with_earlier()
    assert last == Part({"a.py", "b.py", "c.py"}, ["a.py::test was skipped", "c.py::test was failed"])


def test_one_part_is_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a directory nothing is left, and nothing was before."""
    monkeypatch.delenv(VARIABLE, raising=False)
    part = Part({"a.py"})
    part.leave()
    assert part.with_earlier() == part
