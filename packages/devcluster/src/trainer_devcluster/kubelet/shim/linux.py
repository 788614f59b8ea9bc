"""System calls that the standard library lacks (before Python 3.12, or at all), by ctypes."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_NODIRATIME = 0x800
MS_BIND = 0x1000
MS_REC = 0x4000
MS_UNBINDABLE = 0x20000
MS_PRIVATE = 0x40000
MS_RELATIME = 0x200000
_MNT_DETACH = 0x2

_ST_RELATIME = 0x1000
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process to new namespaces; CLONE_NEWPID concerns only its future children (unshare(2))."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(path: str) -> None:
    """Enter the namespace behind a /proc/PID/ns file (setns(2))."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(0)), f"setns {path}")
    finally:
        os.close(descriptor)


def mount(source: str, target: str, filesystem: str, flags: int, data: str = "") -> None:
    """Mount, bind, remount or change propagation (mount(2))."""
    arguments = (os.fsencode(source), os.fsencode(target), filesystem.encode())
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), data.encode())
    _check(result, f"mount {target}")


def make_read_only(target: str) -> None:
    """Make a bind mount read-only and keep its other flags, which a user namespace may not drop (mount(2))."""
    present = os.statvfs(target).f_flag
    flags = present & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
    if present & _ST_RELATIME:
        flags |= MS_RELATIME
    mount("none", target, "none", MS_REMOUNT | MS_BIND | MS_RDONLY | flags)


def switch_root(new_root: str) -> None:
    """Make a mount point the root of this mount namespace and drop the old root (pivot_root(2))."""
    os.chdir(new_root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", ctypes.c_int(_MNT_DETACH)), "umount old root")
    os.chdir("/")


def die_with_parent() -> None:
    """Be killed when the parent dies (PR_SET_PDEATHSIG); inherited neither by children nor over a change of user."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl PR_SET_PDEATHSIG")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has died (PR_SET_CHILD_SUBREAPER)."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl PR_SET_CHILD_SUBREAPER")


def set_process_name(name: str) -> None:
    """Name shown by `ps -o comm` (at most 15 bytes)."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl PR_SET_NAME")


_FLAGS = {
    "user": CLONE_NEWUSER,
    "net": CLONE_NEWNET,
    "uts": CLONE_NEWUTS,
    "ipc": CLONE_NEWIPC,
    "mnt": CLONE_NEWNS,
    "pid": CLONE_NEWPID,
}


def join(paths: Iterable[str]) -> None:
    """Enter namespaces in the given order; a user namespace comes first, because it grants the right to the others."""
    for path in paths:
        setns(path)


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
        unshare(flags)


def return_to(user: int, group: int) -> None:
    """Leave root of a user namespace for the user that made it, by a second one inside it."""
    _become(user, group)


def _become(user: int, group: int) -> None:
    outer_user, outer_group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # An unprivileged process may map groups only after it has given up setgroups (user_namespaces(7)).
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {outer_group} 1", encoding="ascii")
