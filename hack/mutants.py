"""Make one mistake at a time in a copy of this repository, and see whether the tests find it.

    python -m hack.mutants [ROOM ...]

The mistakes are in mutants.toml, by room. A mutant is killed when a test of its room fails, and survives when all pass.

Exit code: 0 when all mutants were killed, 1 when some survived, 2 when the source of some is not found, or in several
places, or the tests do not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
_TIMEOUT = 600
"""Seconds for the tests of one mutant; some mistakes never end."""

_PASSED, _FAILED = 0, 1
"""Exit codes of pytest."""


class Mutant(NamedTuple):
    """A mistake, and the tests that are to find it."""

    room: str
    behaviour: str
    before: str
    after: str
    tests: tuple[str, ...]


class UnusableMutantError(ValueError):
    """The source of a mutant is nowhere or in several places, or its tests do not run."""


def main(rooms: list[str]) -> int:
    """Try the mutants of these rooms, or all; print what happened to each."""
    mutants = [
        mutant for mutant in read((ROOT / "hack/mutants.toml").read_text()) if mutant.room in (rooms or [mutant.room])
    ]
    counts = dict.fromkeys(("killed", "survived", "unusable"), 0)
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory, "copy")
        _copy(copy)
        for number, mutant in enumerate(mutants, start=1):
            try:
                end = "killed" if is_killed(mutant, copy, number) else "survived"
            except UnusableMutantError as error:
                end = f"unusable: {error}"
            counts[end.partition(":")[0]] += 1
            sys.stdout.write(f"{number:3} {mutant.room}: {mutant.behaviour}: {end}\n")
            sys.stdout.flush()
    sys.stdout.write(", ".join(f"{number} {end}" for end, number in counts.items()) + "\n")
    return 2 if counts["unusable"] else 1 if counts["survived"] else 0


def read(text: str) -> Iterator[Mutant]:
    """Give the mutants of a file in the order in which it has them."""
    for room, table in tomllib.loads(text).items():
        for behaviour, before, after in table["mutants"]:
            yield Mutant(room, behaviour, before, after, tuple(table["tests"]))


def is_killed(mutant: Mutant, copy: Path, number: int) -> bool:
    """Whether a test fails with this mistake; `number` differs from those of the other mutants of a copy.

    Raises:
        UnusableMutantError: the source is not in exactly one place, or the tests cannot be collected.
    """
    file = place_of(mutant.before, copy)
    source = file.read_text()
    modified = file.stat().st_mtime
    try:
        file.write_text(source.replace(mutant.before, mutant.after))
        # Python compiles a module again when its size or its second has changed.
        os.utime(file, (modified + number, modified + number))
        return _fails(mutant.tests, copy)
    finally:
        file.write_text(source)
        os.utime(file, (modified, modified))


def place_of(text: str, root: Path) -> Path:
    """Find the only module of the product that has this text, once.

    Raises:
        UnusableMutantError: none has, or it is there more than once.
    """
    modules = [*root.glob("trainer/**/*.py"), *root.glob("packages/*/src/**/*.py")]
    places = {module: module.read_text().count(text) for module in modules}
    found = [module for module, count in places.items() if count]
    if sum(places.values()) != 1:
        where = ", ".join(str(module.relative_to(root)) for module in found) or "no module"
        raise UnusableMutantError(f"{sum(places.values())} times in {where}: {text.splitlines()[0].strip()}")
    return found[0]


def _fails(tests: tuple[str, ...], copy: Path) -> bool:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join(
        map(str, [copy, *copy.glob("packages/*/src"), *copy.glob("devcluster/src")])
    )
    present = [each for each in tests if (copy / each).exists()]
    if not present:
        raise UnusableMutantError(f"its tests are gone: {', '.join(tests)}")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=60", *present]
    try:
        result = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    if result.returncode not in {_PASSED, _FAILED}:
        raise UnusableMutantError(f"pytest ended with exit code {result.returncode}: {result.stdout.strip()[-300:]}")
    return result.returncode == _FAILED


def _copy(copy: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    for path in listed.stdout.split("\0"):
        if path and (ROOT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
