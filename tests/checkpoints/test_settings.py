"""What is said where checkpoints cannot be written, and by whom."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainer.api import checkpoints as claims
from trainer.checkpoints import settings, training
from trainer.progress import report
from trainer.workloads import container_end, pod_life


def wrapped(error: OSError) -> Exception:
    """What PyTorch makes of it."""
    outer = RuntimeError("PytorchStreamWriter failed")
    outer.__context__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(OSError(errno.ENOSPC, ""), "/ck is full; the checkpoints in it stay", id="full"),
        pytest.param(wrapped(OSError(errno.EDQUOT, "")), "/ck is full; the checkpoints in it stay", id="quota"),
        pytest.param(
            RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
            "/ck is full; the checkpoints in it stay",
            id="full-in-words",
        ),
        pytest.param(
            OSError(errno.EROFS, ""),
            "/ck is read-only: TRAINER_CHECKPOINT_DIR must be a directory that can be written",
            id="read-only",
        ),
        pytest.param(
            OSError(errno.EACCES, ""),
            f"/ck cannot be written by user {os.getuid()}: set fsGroup in the securityContext of the pod",
            id="permission",
        ),
        pytest.param(
            OSError(errno.ENOTDIR, ""), "/ck is not a directory: TRAINER_CHECKPOINT_DIR must be one", id="a-file"
        ),
        pytest.param(OSError(errno.EIO, "I/O"), f"/ck: [Errno {errno.EIO}] I/O", id="other"),
        pytest.param(ValueError("x"), "ValueError('x')", id="no-error-of-the-disk"),
    ],
)
def test_reason(error: Exception, expected: str) -> None:
    """The cause and the remedy are one sentence, also where a library hides the error of the disk."""
    assert settings.reason(error, Path("/ck")) == expected


@pytest.mark.parametrize(
    ("left", "said"),
    [
        pytest.param(4096, "{} is full; the checkpoints in it stay", id="full"),
        pytest.param(1 << 30, "RuntimeError('basic_ios::clear: iostream error')", id="not-full"),
    ],
)
def test_an_error_that_says_nothing(left: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyTorch says only that a write has failed, the space that is left says why."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=left, f_frsize=1))
    error = RuntimeError("basic_ios::clear: iostream error")
    assert settings.reason(error, tmp_path) == said.format(tmp_path)


@pytest.mark.parametrize(
    ("local_rank", "rank", "said"),
    [
        pytest.param("0", None, "trainer: x is wrong\n", id="first-of-the-node"),
        pytest.param("1", None, "", id="another-of-the-node"),
        pytest.param("1", 5, "trainer: rank 5: x is wrong\n", id="only-this-one-knows"),
        pytest.param("0", 0, "trainer: x is wrong\n", id="rank-0"),
    ],
)
def test_complaints(
    local_rank: str,
    rank: int | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A complaint is said once, and again after what it is about was well in between."""
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    monkeypatch.setattr(settings, "_said", set())
    for _ in range(3):
        settings.complain("x", "x is wrong", rank=rank)
    assert capsys.readouterr().err == said
    settings.resolved("x")
    settings.complain("x", "x is wrong", rank=rank)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("in_pods", "in_manager"),
    [
        pytest.param(report.DIRECTORY_VARIABLE, claims.DIRECTORY_VARIABLE, id="directory"),
        pytest.param(training.SAVED_AND_ENDED, pod_life.SAVED_AND_ENDED, id="saved-and-ended"),
        pytest.param(training.TERMINATED, container_end.SIGTERM, id="terminated"),
    ],
)
def test_what_pods_and_manager_agree_on(in_pods: object, in_manager: object) -> None:
    """What runs in pods imports nothing of the manager, and has the same words and exit codes."""
    assert in_pods == in_manager
