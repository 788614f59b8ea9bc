"""Where the dev clusters of a user are kept."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import TextIO

import pytest

from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.processes.state_directory import StateDirectory, existing_cluster, existing_clusters


@pytest.mark.parametrize(
    ("state_home", "root"),
    [
        pytest.param("/somewhere", Path("/somewhere/trainer"), id="as the environment says"),
        pytest.param("", Path.home() / ".local/state/trainer", id="empty"),
        pytest.param("here", Path.home() / ".local/state/trainer", id="relative paths are ignored"),
    ],
)
def test_root(monkeypatch: pytest.MonkeyPatch, state_home: str | None, root: Path) -> None:
    """The state directory follows the XDG Base Directory Specification."""
    if state_home is None:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_STATE_HOME", state_home)
    assert StateDirectory.of_user().root == root


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container whose user has only a number the root directory stands in, as container runtimes have it."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)

    assert StateDirectory.of_user().root == Path("/.local/state/trainer")


def test_lock_makes_others_wait(tmp_path: Path) -> None:
    """While one command holds the directory, another gives up after its timeout and says why."""
    state = StateDirectory(tmp_path / "trainer")

    with state.lock():
        with pytest.raises(CommandError, match="another `trainer up` or `trainer down`"), state.lock(timeout_seconds=0):
            pass
        assert state.root.stat().st_mode & 0o777 == 0o700

    with state.lock(timeout_seconds=0):
        pass


def test_delete_data(tmp_path: Path) -> None:
    """What the cluster stores is forgotten, and nothing else; to forget nothing is no error.

    Of a cluster beside the default nothing is left.
    """
    state = StateDirectory(tmp_path / "trainer")
    state.delete_data()
    (state.data / "objects").mkdir(parents=True)
    (state.data / "objects" / "snapshot-1").touch()
    state.kubeconfig.touch()
    history = state.root / "history.db"
    history.touch()
    other = StateDirectory(state.root / "clusters" / "b", "b")
    (other.data / "objects").mkdir(parents=True)
    state.delete_data()
    assert not state.data.exists()
    assert not state.kubeconfig.exists()
    assert history.exists()
    other.delete_data()
    assert not other.root.exists()


def test_interrupted_deletion(tmp_path: Path) -> None:
    """What an interrupted deletion has left is no data of the next cluster, and the next deletion removes it."""
    state = StateDirectory(tmp_path / "trainer")
    left = state.root / "data.deleted"
    (left / "objects").mkdir(parents=True)
    assert state.exists()
    (state.data / "objects").mkdir(parents=True)

    state.delete_data()

    assert not left.exists()
    assert not state.data.exists()
    assert not state.exists()


def test_deleted_while_another_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has waited for the lock of a cluster that was deleted meanwhile gets that of the directory that is there."""
    state, flock = StateDirectory(tmp_path / "b", "b"), fcntl.flock
    locked: list[int] = []

    def delete_first(file: TextIO, how: int) -> None:
        if not locked:
            shutil.rmtree(state.root)
        locked.append(how)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", delete_first)
    with state.lock(timeout_seconds=0):
        assert len(locked) == 2
        assert (state.root / "lock").exists()


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has clusters `dev` and `b`, and a directory that is none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("dev", "b"):
        StateDirectory.of_user(name).data.mkdir(parents=True)
    (tmp_path / "trainer" / "clusters" / "gone").mkdir()
    return tmp_path / "trainer"


def test_names(clusters: Path) -> None:
    """The default cluster keeps the directory that it always had, and each other one has its own."""
    assert [(each.name, each.root) for each in existing_clusters()] == [
        ("dev", clusters),
        ("b", clusters / "clusters" / "b"),
    ]
    shutil.rmtree(clusters / "data")
    assert [each.name for each in existing_clusters()] == ["b"]
    assert existing_cluster("dev").root == clusters
    with pytest.raises(BadInputError, match="--name: there is no cluster a; there are: b"):
        existing_cluster("a")


@pytest.mark.parametrize(
    "name", ["", "-", "a-", "A", "a_b", "a/b", "..", "a.b", "\u00fc", "a" * 41, "a\n"], ids=lambda name: repr(name)[:8]
)
def test_no_name(name: str) -> None:
    """A name is part of a path and of the name of a context, and so has few characters."""
    with pytest.raises(BadInputError, match="is no name of a cluster"):
        StateDirectory.of_user(name)


def test_size(clusters: Path) -> None:
    """What a cluster takes on disk is counted without other clusters."""
    state = existing_cluster("dev")
    (state.data / "objects").write_bytes(b"x" * 100_000)
    (existing_cluster("b").data / "objects").write_bytes(b"x" * 500_000)
    assert 100_000 <= state.size() < 200_000
