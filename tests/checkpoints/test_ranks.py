"""Several ranks that look for a checkpoint and write one together: here as threads, in e2e as processes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainer.checkpoints import ranks, saving, settings, store, training
from trainer.checkpoints.checkpoint import Checkpoint
from trainer.checkpoints.ranks import Group
from trainer.checkpoints.state import RandomState


class Node(threading.local):
    """What a rank has for itself."""

    rank = 0
    directory = Path()


class Ranks:
    """Two ranks, each with a directory that may be the same."""

    def __init__(self, directories: list[Path]) -> None:
        self.directories, self.node = directories, Node()
        self._counters: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._groups = [Group(rank, 2, self._add, self._counters.pop) for rank in range(2)]

    def _add(self, key: str, number: int) -> int:
        with self._lock:
            self._counters[key] += number
            return self._counters[key]

    def group(self) -> Group:
        return self._groups[self.node.rank]

    def all(self, action: Callable[[], object]) -> list[object]:
        """What each rank gets, in threads that run at the same time."""

        def act(rank: int) -> object:
            self.node.rank, self.node.directory = rank, self.directories[rank]
            return action()

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(act, range(2)))


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Ranks]:
    def made(first: str, second: str) -> Ranks:
        found = Ranks([tmp_path / first, tmp_path / second])
        for directory in found.directories:
            directory.mkdir(exist_ok=True)
        monkeypatch.setattr(ranks, "group", found.group)
        for function in ("directory", "writable"):
            monkeypatch.setattr(settings, function, lambda: found.node.directory)
        return found

    monkeypatch.setattr(saving, "_LATE_SECONDS", 0)
    monkeypatch.setattr(settings, "_said", set())
    return made


Make = Callable[[str, str], Ranks]


@pytest.mark.parametrize(
    ("second", "steps", "expected", "said"),
    [
        pytest.param("a", [4, 9], 9, "", id="the-newest"),
        pytest.param("a", [], None, "", id="none"),
        pytest.param("b", [4], None, "no checkpoint is loaded: not all nodes see those of rank 0", id="not-shared"),
    ],
)
def test_latest(
    second: str,
    steps: list[int],
    expected: int | None,
    said: str,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All ranks load the same checkpoint, or none."""
    both = make("a", second)
    for group in both._groups:
        group.sleep = lambda seconds: threading.Event().wait(min(seconds, 0.001))
    monkeypatch.setattr(training, "_START_SECONDS", 5.0)
    for step in steps:
        (tmp_path / "a" / store.step_name(step)).mkdir()
    found = both.all(lambda: training.Training().latest())
    path = None if expected is None else Checkpoint(expected, tmp_path / "a" / store.step_name(expected))
    assert found == [path, path]
    assert said in capsys.readouterr().err


def test_save_together(make: Make, tmp_path: Path) -> None:
    """A checkpoint that several ranks write is complete once all of them have written."""
    both = make("a", "a")
    state = {"random": RandomState(), "epoch": 3}
    path = tmp_path / "a" / "step-5"
    assert both.all(lambda: saving.save(state, 5, both.group())) == [path, path]
    assert {"random-0.json", "random-1.json"} < {each.name for each in path.iterdir()}
    assert Checkpoint(5, path).load()["epoch"] == 3


def test_save_without_a_shared_directory(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes that have directories of their own write nothing, and one sentence says why."""
    both = make("a", "b")
    state = {"random": RandomState()}
    assert both.all(lambda: saving.save(state, 5, both.group())) == [None, None]
    assert [each.name for name in "ab" for each in (tmp_path / name).iterdir()] == []
    why = "this node does not see what rank 0 writes; mount one directory on all nodes"
    assert capsys.readouterr().err == f"trainer: rank 1: no checkpoint of step 5: {why}\n"
