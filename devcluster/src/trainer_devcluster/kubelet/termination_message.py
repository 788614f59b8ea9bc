"""What a container leaves behind for its status (Kubernetes documentation, "Determine the Reason for Pod Failure")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

DEFAULT_PATH = "/dev/termination-log"
_LONGEST = 4096
_LONGEST_FROM_LOG = 2048
_LINES_FROM_LOG = 80
_TAIL = 64 * 1024


def termination_message(
    container: Mapping[str, Any], exit_code: int, message_file: Path, log: Callable[[], Sequence[Path]]
) -> str:
    """The content of the message file, or the end of a failed container's log if the policy says so; may block.

    Args:
        container: its specification.
        exit_code: how it ended.
        message_file: what it may have written to.
        log: lists the files of its log, oldest first.
    """
    message = _read_start(message_file, _LONGEST)
    if message or exit_code == 0 or container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
        return message
    return _end_of_log(log())


def _read_start(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(size).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _end_of_log(files: Sequence[Path]) -> str:
    # Another file may have been begun only just now.
    entries = b"".join(map(_end_of_file, files[-2:])).split(b"\n")
    text = b"".join(map(_content, entries)).splitlines(keepends=True)
    return b"".join(text[-_LINES_FROM_LOG:])[-_LONGEST_FROM_LOG:].decode(errors="replace")


def _end_of_file(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL, 0))
        return file.read()


def _content(entry: bytes) -> bytes:
    """The text of one CRI log entry: `<time> <stream> <F or P> <text>`."""
    _, _, rest = entry.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    return text + b"\n" if tag == b"F" else text
