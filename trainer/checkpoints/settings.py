"""Settings of checkpoints by variables of the environment, and what a training says of them on stderr."""

from __future__ import annotations

import errno
import math
import os
import re
import socket
import sys
from contextlib import suppress
from pathlib import Path

from trainer.checkpoints import store
from trainer.progress.report import DIRECTORY_VARIABLE

SECONDS = "TRAINER_CHECKPOINT_SECONDS"
"""Environment variable with the seconds between two checkpoints; 0: only when the training must end. Default: 600."""
KEEP = "TRAINER_CHECKPOINT_KEEP"
"""Environment variable with the number of checkpoints that are kept, the newest ones. Default: 2."""
OWNER = "TRAINER_CHECKPOINT_OWNER"
"""Environment variable with what tells this training from all others. Default: the name of its JobSet and namespace."""
_POD_OF_JOBSET = re.compile(r"(.+?)-(?:trainer-)?[^-]+-[0-9]+-[0-9]+")
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NUMBER = re.compile(r"\(os error ([0-9]{1,3})\)")
"""In errors of libraries in Rust, such as safetensors."""
_FAILED_WRITES = ("iostream error", "PytorchStreamWriter", "inline_container.cc")
"""In errors of PyTorch where it writes into a file that it has opened by itself."""
_LITTLE = 1 << 20
"""Bytes that are left of a full disk, as what is written last may need more."""

_said: set[str] = set()


def complain(about: str, text: str, *, rank: int | None = None) -> None:
    """Say on stderr what is wrong, once until `resolved`.

    Args:
        about: what is not said twice.
        text: a sentence.
        rank: who says it, where others may not; else one process of each node says it.
    """
    if about not in _said:
        _said.add(about)
        say(text, rank=rank)


def say(text: str, *, rank: int | None = None) -> None:
    """Say something on stderr; `rank` as for `complain`."""
    if rank is None and os.environ.get("LOCAL_RANK", "0") != "0":
        return
    prefix = f"trainer: rank {rank}: " if rank else "trainer: "
    with suppress(Exception):  # there is no stderr
        sys.stderr.write(f"{prefix}{text}\n")
        sys.stderr.flush()


def resolved(about: str) -> None:
    """Have the next complaint about it said again."""
    _said.discard(about)


def directory() -> Path | None:
    """The directory of the checkpoints, which is made if need be; None where there is none or it cannot be used."""
    text = os.environ.get(DIRECTORY_VARIABLE)
    if not text:
        return None
    path = Path(text).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
        owner = store.owner_of(path)
    except OSError as error:
        complain(DIRECTORY_VARIABLE, f"no checkpoints: {reason(error, path)}")
        return None
    return path if _is_own(path, owner) else None


def writable() -> Path | None:
    """The directory, once it is known to be that of this training; None where nothing can be written."""
    path = directory()
    if path is None:
        return None
    try:
        owner = store.claim(path, _owner())
    except OSError as error:
        complain(DIRECTORY_VARIABLE, f"no checkpoints are written: {reason(error, path)}")
        return None
    return path if _is_own(path, owner) else None


def _is_own(path: Path, owner: str) -> bool:
    own = _owner()
    if owner in {"", own} or not own:
        return True
    complain(
        DIRECTORY_VARIABLE,
        f"no checkpoints: {path} belongs to {owner}, and this is {own}; give each training a directory of its own, or "
        f"delete {path / store.OWNER} if that training does not need it any more",
    )
    return False


def reason(error: BaseException, path: Path) -> str:
    """Why a directory cannot be used, and what to do about it."""
    seen: BaseException | None = error
    while seen is not None and not (isinstance(seen, OSError) and seen.errno):
        seen = seen.__cause__ or seen.__context__
    number = seen.errno if isinstance(seen, OSError) else _hidden_number(error, path)
    if number in _FULL:
        return f"{path} is full; the checkpoints in it stay"
    if number == errno.EROFS:
        return f"{path} is read-only: {DIRECTORY_VARIABLE} must be a directory that can be written"
    if number in {errno.EACCES, errno.EPERM}:
        return f"{path} cannot be written by user {os.getuid()}: set fsGroup in the securityContext of the pod"
    if number in {errno.EEXIST, errno.ENOTDIR}:
        return f"{path} is not a directory: {DIRECTORY_VARIABLE} must be one"
    return f"{path}: {seen}" if isinstance(seen, OSError) else f"{error!r:.300}"


def _hidden_number(error: BaseException, path: Path) -> int:
    """The number of an error of the disk that a library tells as a text, or not at all as PyTorch does; 0 for none."""
    match = _NUMBER.search(str(error))
    if match is not None:
        return int(match[1])
    with suppress(OSError):
        if any(words in str(error) for words in _FAILED_WRITES):
            space = os.statvfs(path)
            return errno.ENOSPC if space.f_bavail * space.f_frsize < _LITTLE else 0
    return 0


def seconds() -> float:
    """The time between two checkpoints; infinite for none."""
    number = _number(SECONDS, 600.0, "seconds, or 0 for none but at the end")
    return number or math.inf


def keep() -> int:
    """The number of checkpoints that are kept."""
    return max(1, int(_number(KEEP, 2.0, "a number from 1")))


def _number(name: str, default: float, rule: str) -> float:
    text = os.environ.get(name, "")
    with suppress(ValueError):
        if not text or 0 <= float(text) < math.inf:
            return float(text or default)
    complain(name, f"takes {default:g} for {name}={text!r:.50}: must be {rule}")
    return default


def _owner() -> str:
    """What tells this training from others: known in pods of a JobSet, "" elsewhere."""
    stated = os.environ.get(OWNER, "").strip()
    if stated or "JOB_COMPLETION_INDEX" not in os.environ:
        return " ".join(stated.split())
    match = _POD_OF_JOBSET.fullmatch(os.environ.get("HOSTNAME") or socket.gethostname())
    if match is None:
        return ""
    namespace = ""
    with suppress(OSError):
        namespace = _NAMESPACE.read_text(encoding="utf-8").strip()
    return f"{namespace}/{match[1]}" if namespace else match[1]
