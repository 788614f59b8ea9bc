"""The requirements of the images, compared with what pyproject.toml and constraints.txt say, without an index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hack.generate_requirements import FILES, HEADING, ROOT, Requirements
from hack.pins import pins

HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
PLATFORM = {
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "python_version": "3.11",
    "python_full_version": "3.11.0",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_machine": "x86_64",
}

files = pytest.mark.parametrize("requirements", [pytest.param(each, id=each.file) for each in FILES])


def pinned(requirements: Requirements) -> dict[str, str]:
    """The versions of a file."""
    return pins((ROOT / requirements.file).read_text())


def closure(direct: Iterable[str]) -> set[str]:
    """The names of what requirements bring in, by what is installed here."""
    found: set[str] = set()
    left = [(Requirement(each), "") for each in direct]
    while left:
        requirement, extra = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({**PLATFORM, "extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        wanted = [""] if name not in found else []
        found.add(name)
        for each in [*wanted, *requirement.extras]:
            left += [(Requirement(text), each) for text in requires(name) or () if not each or "extra" in text]
    return found


@files
def test_form(requirements: Requirements) -> None:
    """Each requirement has a version and the hashes of its files, and the file names nothing else."""
    heading, *lines = (ROOT / requirements.file).read_text().splitlines()
    assert f"{heading}\n" == HEADING.format(what=requirements.what)
    names = [index for index, line in enumerate(lines) if re.fullmatch(r"[a-z0-9-]+==\S+ \\", line)]
    assert names[0] == 0
    hashes = [index for index, line in enumerate(lines) if HASH.fullmatch(line)]
    assert sorted([*names, *hashes]) == [*range(len(lines))]
    assert all(index + 1 in hashes for index in names)
    assert [*pinned(requirements)] == sorted(pinned(requirements))


@files
def test_versions(requirements: Requirements) -> None:
    """They are those of constraints.txt, and pyproject.toml allows them: otherwise `make requirements`."""
    tested = pins((ROOT / "constraints.txt").read_text())
    found = pinned(requirements)
    assert found == {name: tested.get(name) for name in found}
    for direct in map(Requirement, requirements.direct()):
        assert direct.specifier.contains(found[canonicalize_name(direct.name)])


@files
def test_complete(requirements: Requirements) -> None:
    """What is required is there, with all that it needs, and nothing else."""
    try:
        expected = closure(requirements.direct())
        there = closure(requirements.there)
    except PackageNotFoundError as error:
        pytest.skip(f"{error.name} is not installed here")
    assert set(pinned(requirements)) == expected - there
