"""What is installed in an image."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from e2e.images.container import Container

ROOT = Path(__file__).parents[2]
_LISTED = """
import importlib.metadata as m, json
print(json.dumps({d.name: [d.version, d.requires or []] for d in m.distributions()}))
"""


def installed(container: Container, python: str = "python") -> dict[str, tuple[str, list[str]]]:
    """Version and requirements of each distribution that the Python of an image finds."""
    listed = json.loads(container.python(_LISTED, python))
    return {canonicalize_name(name): tuple(each) for name, each in listed.items()}


def named(requirements: Iterable[str]) -> set[str]:
    """The names of requirements."""
    return {canonicalize_name(Requirement(each).name) for each in requirements}
