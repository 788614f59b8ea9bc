"""Make one mistake at a time in a copy of this repository, and see whether the tests find it.

    python -m hack.mutants [--list] [ROOM ...]

The mistakes are in mutants.toml, by room. A mutant is killed when a test of its room fails, and survives when all pass.
With `--list`, no test runs: each mutant is only checked.

Exit code: 0 when all mutants were killed, 1 when some survived, 2 when the source of some is not found, or in several
places, or their tests are not there or do not run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
    """The source of a mutant is nowhere or in several places, or its tests are not there or do not run."""


def main(arguments: list[str]) -> int:
    """Try the mutants of these rooms, or all, or only check them; print what happened to each."""
    parser = argparse.ArgumentParser(prog="python -m hack.mutants")
    parser.add_argument("--list", action="store_true", help="check the mutants, and run no test")
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    options = parser.parse_args(arguments)
    mutants = list(read((ROOT / "hack/mutants.toml").read_text()))
    if unknown := set(options.rooms) - {mutant.room for mutant in mutants}:
        parser.error(f"no mutants are in {', '.join(sorted(unknown))}")
    counts = dict.fromkeys(("usable",) if options.list else ("killed", "survived"), 0) | {"unusable": 0}
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Path(directory, "copy")
        _copy(copy)
        for number, mutant in enumerate(mutants, start=1):
            if mutant.room not in (options.rooms or [mutant.room]):
                continue
            try:
                if options.list:
                    check(mutant, copy)
                    end = "usable"
                else:
                    end = "killed" if is_killed(mutant, copy, number) else "survived"
            except UnusableMutantError as error:
                end = f"unusable: {error}"
            counts[end.partition(":")[0]] += 1
            sys.stdout.write(f"{number:3} {mutant.room}: {mutant.behaviour}: {end}\n")
            sys.stdout.flush()
    sys.stdout.write(", ".join(f"{number} {end}" for end, number in counts.items()) + "\n")
    return 2 if counts["unusable"] else 1 if counts.get("survived") else 0


def read(text: str) -> Iterator[Mutant]:
    """Give the mutants of a file in the order in which it has them."""
    for room, table in tomllib.loads(text).items():
        for behaviour, before, after in table["mutants"]:
            yield Mutant(room, behaviour, before, after, tuple(table["tests"]))


def check(mutant: Mutant, root: Path) -> tuple[Path, str]:
    """Find the module of a mutant, and its source with the mistake.

    Raises:
        UnusableMutantError: the source is not in exactly one place, the mistake is no Python, or a test is not there.
    """
    if missing := [each for each in mutant.tests if not (root / each).exists()]:
        raise UnusableMutantError(f"there are no tests {', '.join(missing)}")
    file = place_of(mutant.before, root)
    mistaken = file.read_text().replace(mutant.before, mutant.after)
    try:
        compile(mistaken, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise UnusableMutantError(f"{file.relative_to(root)} is no Python with it: {error}") from error
    return file, mistaken


def is_killed(mutant: Mutant, copy: Path, number: int) -> bool:
    """Whether a test fails with this mistake; `number` differs from those of the other mutants of a copy.

    Raises:
        UnusableMutantError: it does not pass `check`, or the tests cannot be collected.
    """
    file, mistaken = check(mutant, copy)
    source = file.read_text()
    modified = file.stat().st_mtime
    try:
        file.write_text(mistaken)
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
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [copy, *copy.glob("packages/*/src")]))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=60", *tests]
    try:
        result = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    if result.returncode not in {_PASSED, _FAILED}:
        said = f"{result.stdout}\n{result.stderr}".strip()[-300:]
        raise UnusableMutantError(f"pytest ended with exit code {result.returncode}: {said}")
    return result.returncode == _FAILED


def _copy(copy: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    for path in listed.stdout.split("\0"):
        if path and (ROOT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
