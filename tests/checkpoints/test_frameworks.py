"""What the checkpoints of all frameworks have in common: whose they are, and where they may be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainer.checkpoints import saving, settings
from trainer.checkpoints.frameworks import mounts, runs
from trainer.progress import report

TRAIN = ["/src/train.py", "--lr", "0.1"]


@pytest.mark.parametrize(
    ("words", "is_same"),
    [
        pytest.param(["train.py", "--lr", "0.1"], True, id="other-path-of-the-script"),
        pytest.param([*TRAIN, "--local_rank", "3"], True, id="rank"),
        pytest.param([*TRAIN, "--local-rank=3"], True, id="rank-in-one-word"),
        pytest.param([*TRAIN, "hydra.run.dir=/tmp/1"], True, id="directory-of-hydra"),
        pytest.param(["train.py", "--lr", "0.2"], False, id="other-arguments"),
        pytest.param(["evaluate.py", "--lr", "0.1"], False, id="other-script"),
    ],
)
def test_program(words: list[str], is_same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has one name on all ranks and after a restart; another one, or with other arguments, has another."""
    monkeypatch.setattr(sys, "argv", TRAIN)
    name = runs.program()
    assert name.startswith("train-")
    monkeypatch.setattr(sys, "argv", words)
    assert (runs.program() == name) is is_same


def test_trainings_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each training of a process has a directory of its own, up to a number that a claim can hold."""
    monkeypatch.setattr(runs, "_count", [0])
    assert runs.next_run() is None
    monkeypatch.setenv(report.DIRECTORY_VARIABLE, str(tmp_path))
    found = [runs.next_run() for _ in range(17)]
    assert len({*found}) == 17
    assert found[-1] is None
    assert {path.parent for path in found[:-1] if path is not None} == {tmp_path}


def test_directories_that_are_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever writes a checkpoint, why there is none is said in the same sentence."""
    monkeypatch.setenv(report.DIRECTORY_VARIABLE, str(tmp_path))
    monkeypatch.setattr(settings, "_said", set())

    def fail(path: Path) -> None:
        raise saving.NotSharedError("mount one directory on all nodes")

    runs.write(tmp_path, 3, fail)
    assert capfd.readouterr().err == "trainer: no checkpoint of step 3: mount one directory on all nodes\n"


ROOT = "1 0 0:1 / / rw - overlay overlay rw"
CLAIM = "2 1 0:2 / /data rw - nfs4 server:/export rw"
EMPTY = "3 1 8:1 /pods/1/volumes/kubernetes.io~empty-dir/scratch /scratch rw - ext4 /dev/sda1 rw"
MEMORY = "4 1 0:3 / /dev/shm rw - tmpfs tmpfs rw"
HOST = "5 1 8:1 /disks/my\\040pv /local rw - ext4 /dev/sda1 rw"
NESTED = "6 2 8:1 /pods/1/volumes/kubernetes.io~empty-dir/cache /data/cache rw - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("path", "is_lasting"),
    [
        pytest.param("/out", False, id="file-system-of-the-pod"),
        pytest.param("/data/out", True, id="claim"),
        pytest.param("/database", False, id="name-that-begins-so"),
        pytest.param("/data/cache/out", False, id="empty-directory-in-a-claim"),
        pytest.param("/scratch/out", False, id="empty-directory"),
        pytest.param("/dev/shm/out", False, id="memory"),
        pytest.param("/local/out", True, id="disk-of-the-node"),
    ],
)
def test_lasting(path: str, is_lasting: bool, tmp_path: Path) -> None:
    """What is on a claim outlasts a pod; its own file system, memory and empty directories do not."""
    file = tmp_path / "mountinfo"
    file.write_text(f"{ROOT}\n{CLAIM}\n{EMPTY}\n{MEMORY}\n{HOST}\n{NESTED}")
    assert mounts.is_lasting(Path(path), file) is is_lasting


def test_mounts_that_are_unknown(tmp_path: Path) -> None:
    """A system that does not say what is mounted has nothing that is known to last."""
    assert not mounts.is_lasting(Path("/data"), tmp_path / "mountinfo")


class Hooks:
    """A callback that fails."""

    def on_step(self) -> None:
        raise ValueError(7)

    def on_end(self) -> None:
        raise SystemExit(75)


def test_hooks_that_fail(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that fails is one line, however often, and does not end the training; one that ends it does."""
    monkeypatch.setattr(settings, "_said", set())
    hooks = runs.guard(Hooks)()
    hooks.on_step()
    hooks.on_step()
    assert capfd.readouterr().err == "trainer: checkpoints of this training: ValueError(7)\n"
    with pytest.raises(SystemExit):
        hooks.on_end()
