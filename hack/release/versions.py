"""The version of the project, in every file that names it.

All distributions, images, manifests and the chart have one version, and each distribution requires the others of the
same minor version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hack.release.settings import ROOT, VERSION_FILE, git, version_in

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_READ_BY_PEOPLE = ("docs/", "config/", "charts/kubeflow-trainer/Chart.yaml", "tests/")
_HISTORY = ("CHANGELOG.md", "docs/releases.md")
"""What says in which version something came: it stays."""


def set_version(version: str, root: Path = ROOT) -> tuple[str, ...]:
    """Set the version everywhere, and give the files that have changed, relative to the root.

    What is generated from them is not: `python -m hack.generate_chart` and `hack.generate_reference` do that.

    Raises:
        ValueError: the version is none, such as `v0.3.0` or `0.3`.
    """
    if _VERSION.fullmatch(version) is None:
        raise ValueError(f"{version} is no version of this project: it has three numbers, such as 0.3.0")
    old = current(root)
    changed = []
    for name in git("ls-files", "-z", root=root).split("\0"):
        patterns = [(re.compile(pattern, re.MULTILINE), new) for pattern, new in _replacements(name, old, version)]
        if not patterns or not (root / name).is_file():
            continue
        try:
            before = after = (root / name).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for pattern, new in patterns:
            after = pattern.sub(new, after)
        if after != before:
            (root / name).write_text(after, "utf-8")
            changed.append(name)
    return tuple(changed)


def current(root: Path = ROOT) -> str:
    """Give the version of the tree."""
    return version_in((root / VERSION_FILE).read_text("utf-8"))


def former(version: str, released: Iterable[str]) -> str:
    """Give the newest released version of the minor versions before that of a version: upgrades start there.

    Raises:
        ValueError: there is none.
    """
    minor = _numbers(version)[:2]
    earlier = [each for each in released if _numbers(each)[:2] < minor]
    if not earlier:
        raise ValueError(f"CHANGELOG.md: no minor version before {version} has a section ## [X.Y.Z] - YYYY-MM-DD")
    return max(earlier, key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _replacements(name: str, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Give regular expressions for a file, and what takes the place of their matches."""
    was, end = re.escape(old), r"(?!\.?\d)"
    if name in _HISTORY:
        return
    if name.endswith("/__init__.py"):
        yield rf'^__version__ = "{was}"$', f'__version__ = "{new}"'
    elif name.endswith("pyproject.toml"):
        yield rf"(\btrainer-[a-z0-9-]+(?:\[[a-z,]+\])?){re.escape(_bounds(old))}", rf"\g<1>{_bounds(new)}"
    elif name.startswith(_READ_BY_PEOPLE):
        ours = "trainer[-_][a-z_-]+|transformers-runtime|kubeflow-trainer"
        yield rf"\b((?:{ours})(?::|-|[~=]=)){was}{end}", rf"\g<1>{new}"
        yield rf"(--version ){was}{end}", rf"\g<1>{new}"
        yield rf"^(\s*newTag: ){was}$", rf"\g<1>{new}"
        yield rf"^((?:version|appVersion): ){was}$", rf"\g<1>{new}"


def _bounds(version: str) -> str:
    major, minor, _ = version.split(".")
    return f">={major}.{minor},<{major}.{int(minor) + 1}"
