"""Termination messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer_devcluster.kubelet.termination import termination_message

FALLBACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}
LOG = b"t stdout F one\nt stdout P tw\nt stdout F o\nt stdout P three\n"


@pytest.mark.parametrize(
    ("container", "exit_code", "message", "log", "expected"),
    [
        pytest.param({}, 1, b"why", LOG, "why", id="file"),
        pytest.param({}, 0, b"fine", LOG, "fine", id="file of a success"),
        pytest.param({}, 1, b"", LOG, "", id="no fallback"),
        pytest.param(FALLBACK, 1, b"", LOG, "one\ntwo\nthree", id="fallback"),
        pytest.param(FALLBACK, 0, b"", LOG, "", id="no fallback for a success"),
        pytest.param(FALLBACK, 1, b"why", LOG, "why", id="file before log"),
        pytest.param({}, 1, b"x" * 5000, LOG, "x" * 4096, id="cut"),
        pytest.param(FALLBACK, 1, b"", b"t stdout F l\n" * 100, "l\n" * 80, id="80 lines"),
        pytest.param(FALLBACK, 1, b"", b"t stdout F " + b"y" * 3000 + b"\n", "y" * 2047 + "\n", id="2048 bytes"),
        pytest.param(FALLBACK, 1, b"\xff", b"", "\ufffd", id="no UTF-8"),
    ],
)
def test_message(
    tmp_path: Path, container: dict[str, str], exit_code: int, message: bytes, log: bytes, expected: str
) -> None:
    """The message is the file's, or the log's end if the policy allows."""
    (tmp_path / "message").write_bytes(message)
    (tmp_path / "log").write_bytes(log)
    assert termination_message(container, exit_code, tmp_path / "message", lambda: [tmp_path / "log"]) == expected


def test_log_in_several_files(tmp_path: Path) -> None:
    """Where another file of the log has just been begun, the end of the one before it counts too."""
    files = [tmp_path / "0.log", tmp_path / "0.log.1"]
    files[0].write_bytes(LOG)
    files[1].write_bytes(b"t stdout F !\n")
    assert termination_message(FALLBACK, 1, tmp_path / "message", lambda: files) == "one\ntwo\nthree!\n"


def test_no_files(tmp_path: Path) -> None:
    """A container that could not start has left nothing."""
    assert termination_message(FALLBACK, 1, tmp_path / "message", list) == ""
