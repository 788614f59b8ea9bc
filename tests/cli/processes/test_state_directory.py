"""Where `trainer up` keeps what it must remember."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.cli.errors import CommandError
from trainer.cli.processes.state_directory import StateDirectory


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        pytest.param({"XDG_STATE_HOME": "/somewhere"}, Path("/somewhere/trainer"), id="as the environment says"),
        pytest.param({}, Path.home() / ".local/state/trainer", id="default"),
        pytest.param({"XDG_STATE_HOME": ""}, Path.home() / ".local/state/trainer", id="empty"),
        pytest.param({"XDG_STATE_HOME": "here"}, Path.home() / ".local/state/trainer", id="relative paths are ignored"),
    ],
)
def test_root(environment: dict[str, str], root: Path) -> None:
    """The state directory follows the XDG Base Directory Specification."""
    assert StateDirectory.of_user(environment).root == root


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container whose user has only a number the root directory stands in, as container runtimes have it."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)

    assert StateDirectory.of_user({}).root == Path("/.local/state/trainer")


def test_asking_creates_nothing(tmp_path: Path) -> None:
    """Reading commands work on a home that cannot be written to."""
    state = StateDirectory(tmp_path / "trainer")

    assert state.record("cluster").parent == state.log("cluster").parent == state.kubeconfig.parent == state.root
    assert not state.root.exists()


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
    """What the cluster stores is forgotten, and nothing else; to forget nothing is no error."""
    state = StateDirectory(tmp_path / "trainer")
    state.delete_data()
    (state.data / "objects").mkdir(parents=True)
    (state.data / "objects" / "snapshot-1").touch()
    state.kubeconfig.touch()
    state.delete_data()
    assert not state.data.exists()
    assert state.kubeconfig.exists()
