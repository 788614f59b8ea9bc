"""The distributions that are released together with this one: those that are installed must be of the same release."""

from __future__ import annotations

from importlib.metadata import EntryPoint, PackageNotFoundError, version
from typing import Final

OWN: Final = "trainer-operator"
RELEASED_TOGETHER: Final = frozenset(
    {
        "trainer-dashboard",
        "trainer-devcluster",
        "trainer-initializers",
        "trainer-kube-testing",
        "trainer-sweeps",
        "trainer-v1-jobs",
    }
)
"""Their names; each pins the minor version of this one, which pip heeds when it installs them, and no longer after."""


class OtherReleaseError(Exception):
    """A distribution is of another minor version than this one; the message says how to get one that fits."""


def check_release(name: str) -> None:
    """Check that a distribution fits this one; others than those that are released together always do.

    Raises:
        OtherReleaseError: its minor version is another one.
    """
    if name not in RELEASED_TOGETHER:
        return
    try:
        found, own = version(name), version(OWN)
    except PackageNotFoundError:  # they run from a checkout, without pip
        return
    if _minor(found) != _minor(own):
        major, minor = _minor(own)
        fitting = f"{name}>={major}.{minor},<{major}.{int(minor) + 1}"
        raise OtherReleaseError(f"{name} {found} does not fit {OWN} {own}: pip install '{fitting}'")


def check_entry_point(point: EntryPoint) -> None:
    """Check that the distribution of an entry point fits this one, before its code is imported.

    Raises:
        OtherReleaseError: its minor version is another one.
    """
    if point.dist is not None:
        check_release(point.dist.name)


def _minor(text: str) -> list[str]:
    return text.split(".")[:2]
