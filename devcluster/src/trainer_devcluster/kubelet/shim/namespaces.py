"""Entering and making namespaces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from . import linux

if TYPE_CHECKING:
    from collections.abc import Iterable

_FLAGS = {
    "user": linux.CLONE_NEWUSER,
    "net": linux.CLONE_NEWNET,
    "uts": linux.CLONE_NEWUTS,
    "ipc": linux.CLONE_NEWIPC,
    "mnt": linux.CLONE_NEWNS,
    "pid": linux.CLONE_NEWPID,
}


def join(paths: Iterable[str]) -> None:
    """Enter namespaces in the given order; a user namespace comes first, because it grants the right to the others."""
    for path in paths:
        linux.setns(path)


def make(kinds: Iterable[str]) -> None:
    """Make namespaces; with a user namespace, become root in it and make the others there."""
    wanted = set(kinds)
    if "user" in wanted:
        _become(0, 0)
        wanted.remove("user")
    flags = 0
    for kind in wanted:
        flags |= _FLAGS[kind]
    if flags:
        linux.unshare(flags)


def return_to(user: int, group: int) -> None:
    """Leave root of a user namespace for the user that made it, by a second one inside it."""
    _become(user, group)


def _become(user: int, group: int) -> None:
    outer_user, outer_group = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER)
    # An unprivileged process may map groups only after it has given up setgroups (user_namespaces(7)).
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {outer_group} 1", encoding="ascii")
