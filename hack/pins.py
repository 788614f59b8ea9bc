"""Versions and hashes that files of constraints and requirements pin; it needs the standard library alone."""

from __future__ import annotations

import re

_PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pins(requirements: str) -> dict[str, str]:
    """Give the version of each distribution that is pinned, by normalized name."""
    return {_normalized(name): version for name, version in _PIN.findall(requirements)}


def hashes(requirements: str) -> dict[str, tuple[str, ...]]:
    """Give the SHA-256 of each file that hash-pinned requirements allow, by `name==version`."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in requirements.replace("\\\n", " ").splitlines():
        if pin := _PIN.match(entry):
            found[f"{_normalized(pin[1])}=={pin[2]}"] = tuple(sorted(_HASH.findall(entry)))
    return found


def _normalized(name: str) -> str:
    """As `packaging.utils.canonicalize_name` does it, which images are built without."""
    return re.sub(r"[-_.]+", "-", name).lower()
