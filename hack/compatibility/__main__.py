"""Run the tests of combinations: `python -m hack.compatibility 3.12 3.13 3.14 oldest newest`; see `make compat`."""

from __future__ import annotations

import shlex
import sys

from hack.compatibility.combinations import COMBINATIONS, Combination, commands
from hack.compatibility.places import NoPythonError, place_of
from hack.images.errors import ImageError


def main(names: list[str]) -> int:
    """Run the named combinations one after the other; 1 where a command of one fails, or none has its Python."""
    known = {each.name: each for each in COMBINATIONS}
    if not names or not known.keys() >= set(names):
        sys.stderr.write(f"usage: python -m hack.compatibility [{'|'.join(known)}] ...\n")
        return 2
    failed, untested = [], []
    for name in names:
        try:
            if not passes(known[name]):
                failed.append(name)
        except ImageError as error:
            sys.stderr.write(f"error: {name}: {error}\n")
            failed.append(name)
        except NoPythonError as error:
            untested.append(f"{name} is not tested: {error}")
    level = "error" if len(untested) == len(names) else "warning"
    sys.stderr.writelines(f"{level}: {each}\n" for each in untested)
    if failed:
        sys.stderr.write(f"error: failed: {', '.join(failed)}\n")
    return 1 if failed or len(untested) == len(names) else 0


def passes(combination: Combination) -> bool:
    """Run all that belongs to a combination, also after tests have failed.

    Raises:
        NoPythonError: its Python is not to be had.
    """
    with place_of(combination.python) as place:
        make, install, *tests = commands(combination, place.interpreter, f"{place.environments}/{combination.name}")
        for command in (make, install):
            _show(combination, command)
            if place.call(command):
                return False
        codes = []
        for command in tests:
            _show(combination, command)
            codes.append(place.call(command))
        return not any(codes)


def _show(combination: Combination, command: tuple[str, ...]) -> None:
    sys.stderr.write(f"{combination.name}: {shlex.join(command)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
