"""Which directories of a pod outlast it: those on volumes, but for the ones that come and go with the pod."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_OF_POD = ("/kubernetes.io~empty-dir/", "/kubernetes.io~configmap/", "/kubernetes.io~projected/", "/sandboxes/")
"""Where the kubelet keeps the volumes that go with a pod, and the dev cluster all of it."""
_IN_MEMORY = frozenset({"overlay", "tmpfs", "ramfs"})


def is_lasting(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether what is written there outlasts the pod; False where it cannot be known.

    Args:
        path: a directory, which need not exist.
        mounts: the file with the mounts of this process, as proc(5) describes it.
    """
    with suppress(OSError, ValueError, IndexError):
        real = path.resolve()
        best, lasting = -1, False
        for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
            before, _, after = line.partition(" - ")
            root, point = (_unescaped(each) for each in before.split(" ")[3:5])
            parts = Path(point).parts
            if real.parts[: len(parts)] == parts and len(parts) >= best:  # the later mount hides the earlier one
                kind = after.split(" ", 1)[0]
                best = len(parts)
                lasting = len(parts) > 1 and kind not in _IN_MEMORY and not any(each in f"{root}/" for each in _OF_POD)
        return lasting
    return False


def _unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape")
