"""Termination messages."""

from __future__ import annotations

from pathlib import Path

from trainer_devcluster.kubelet.termination import termination_message

FALLBACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}
LOG = b"t stdout F one\nt stdout P tw\nt stdout F o\nt stdout P three\n"


def test_log_in_several_files(tmp_path: Path) -> None:
    """Where another file of the log has just been begun, the end of the one before it counts too."""
    files = [tmp_path / "0.log", tmp_path / "0.log.1"]
    files[0].write_bytes(LOG)
    files[1].write_bytes(b"t stdout F !\n")
    assert termination_message(FALLBACK, 1, tmp_path / "message", files[0]) == "one\ntwo\nthree!\n"
