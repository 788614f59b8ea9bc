"""Where the logs of containers are, for the kubelet that writes them and the API server that reads them.

A run of a container has a log: `<data dir>/pods/<pod uid>/<container>/<restart count>.log`. When this file is full, the
log goes on in another with the same name and `.1`, then `.2` and so on, while the oldest are deleted.
"""

from __future__ import annotations

import os
from pathlib import Path


def pod_logs(data_dir: Path, pod_uid: str) -> Path:
    """Directory of all logs of a pod."""
    return data_dir / "pods" / pod_uid


def log_path(data_dir: Path, pod_uid: str, container: str, restart_count: int) -> Path:
    """Where the log of one run of a container is."""
    return pod_logs(data_dir, pod_uid) / container / f"{restart_count}.log"


def log_file(log: Path, number: int) -> Path:
    """One file of a log."""
    return log.with_name(f"{log.name}.{number}") if number else log


def log_files(log: Path) -> dict[int, Path]:
    """All files of a log by their number, the oldest first; reads a directory."""
    try:
        names = os.listdir(log.parent)  # noqa: PTH208 - with the pod, the directory may go at any moment; glob fails then
    except FileNotFoundError:
        return {}
    found = {0: log} if log.name in names else {}
    for name in names:
        stem, _, number = name.rpartition(".")
        if stem == log.name and number.isdigit():
            found[int(number)] = log.with_name(name)
    return dict(sorted(found.items()))
