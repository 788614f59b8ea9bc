"""Choose the tests of a run: those of the core, and those of the lanes that a change can have broken.

    python -m hack.lanes                  names of the lanes that have to run; why, on standard error
    python -m hack.lanes unit|e2e LANE    what pytest gets to run the unit or the end-to-end tests of a lane
    python -m hack.lanes unit|e2e core    of all that belongs to no lane

A lane is left out where nothing that it imports or reads has changed since the commit that `.ci/verified` names, at
which all tests have passed (`make nightly`). What it imports is computed from the imports of its tests and of what its
processes run; a file that is no Python is read by all lanes unless the tables below say otherwise.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[1]
VERIFIED = ".ci/verified"
CORE = "core"


@dataclass(frozen=True)
class Lane:
    """Tests of a part that the rest does without; paths that a checkout lacks are ignored."""

    unit: tuple[str, ...]
    e2e: tuple[str, ...]
    runs: tuple[str, ...]
    """The modules that its processes run, beside what its tests import."""
    reads: tuple[str, ...] = ()
    """Files that are no Python, and that lanes read only where they say so."""


_SOURCES = tuple(
    f"packages/{name}/{part}"
    for name in ("dashboard", "devcluster", "initializers", "sweeps", "v1_jobs")
    for part in ("README.md", "pyproject.toml", "src")
)
"""What wheels are built from."""
LANES = {
    "devcluster": Lane(
        unit=("packages/devcluster/tests", "tests/conformance"),
        e2e=("e2e/test_clients.py", "e2e/test_scheduling.py"),
        runs=("packages/devcluster/src", "trainer/cli/local"),
        reads=("packages/devcluster",),
    ),
    "sweeps": Lane(
        unit=("packages/sweeps/tests",),
        e2e=("e2e/sweeps",),
        runs=(
            "packages/sweeps/src",
            "packages/dashboard/src/trainer_dashboard/history",
            "packages/v1_jobs/src/trainer_v1_jobs/katib",
        ),
        reads=("packages/sweeps",),
    ),
    "v1_jobs": Lane(
        unit=("packages/v1_jobs/tests",),
        e2e=("e2e/test_from_v1.py", "e2e/test_v1_jobs.py"),
        runs=("packages/v1_jobs/src",),
        reads=("packages/v1_jobs", "config/v1", "docs/migrate-from-v1.md", "docs/migrate-from-katib.md"),
    ),
    "dashboard": Lane(
        unit=("packages/dashboard/tests",),
        e2e=(
            "e2e/dashboard",
            "e2e/test_history.py",
            "e2e/failures/test_dashboard_attacks.py",
            "e2e/failures/test_recorder.py",
        ),
        runs=("packages/dashboard/src",),
        reads=(
            "packages/dashboard",
            "config/dashboard",
            "config/dashboard-impersonation",
            "config/history",
            "config/history-postgresql",
        ),
    ),
    "initializers": Lane(
        unit=("packages/initializers/tests",),
        e2e=("e2e/test_initializers.py", "e2e/test_fine_tune.py"),
        runs=("packages/initializers/src",),
        reads=("packages/initializers", "examples/fine-tune-tiny"),
    ),
    "release": Lane(
        unit=("tests/hack/images",),
        e2e=("e2e/images", "e2e/upgrades"),
        runs=("hack/images", "trainer", *_SOURCES),
        reads=(
            ".dockerignore",
            "Dockerfile",
            "images",
            "config/dashboard",
            "config/dashboard-impersonation",
            "config/history",
            "config/history-postgresql",
            *_SOURCES,
        ),
    ),
}

NIGHTLY = (
    "e2e/checkpoints/test_frameworks.py",
    "e2e/checkpoints/test_processes.py",
    "e2e/checkpoints/test_torchtune.py",
    "e2e/failures",
    "e2e/gangs/test_shipped.py",
    "e2e/images/test_reproducible.py",
    "e2e/images/test_servers.py",
    "e2e/images/test_storage.py",
    "e2e/images/test_transformers.py",
    "e2e/release",
    "e2e/sweeps/test_examples.py",
    "e2e/test_callbacks.py",
    "e2e/test_chart.py",
    "e2e/test_examples.py",
    "e2e/test_flux.py",
    "e2e/test_injection.py",
    "e2e/test_kep_examples.py",
    "e2e/test_mpi.py",
    "e2e/test_sdk.py",
    "e2e/test_torchtune.py",
    "e2e/test_v1_sdk.py",
    "e2e/upgrades/test_cluster.py",
    "e2e/upgrades/test_laptop.py",
    "e2e/upgrades/test_skew.py",
)
"""End-to-end tests that only `make nightly` runs: frameworks, SDKs, images, attacks and other versions."""

NOT_READ = (
    ".github",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "LICENSE",
    "benchmarks",
    "charts",
    "docs",
    VERIFIED,
)
"""Files that are no Python, and that the tests of no lane read unless it says so."""


def main(arguments: list[str]) -> int:
    """Print names of lanes, or arguments of pytest."""
    match arguments:
        case []:
            for name, reason in chosen(ROOT).items():
                verdict = (
                    f"runs: {reason}" if reason else f"left out: nothing that it uses has changed since {VERIFIED}"
                )
                sys.stderr.write(f"lane {name} {verdict}\n")
                if reason:
                    sys.stdout.write(f"{name}\n")
        case ["unit" | "e2e" as kind, name] if name in {CORE, *LANES}:
            sys.stdout.write(" ".join(arguments_of(ROOT, kind, name)) + "\n")
        case _:
            sys.stderr.write(f"usage: python -m hack.lanes [unit|e2e {CORE}|{'|'.join(LANES)}]\n")
            return 2
    return 0


def arguments_of(root: Path, kind: str, name: str) -> list[str]:
    """Give the arguments with which pytest runs these tests."""
    of_lanes = [path for lane in LANES.values() for path in (lane.unit if kind == "unit" else lane.e2e)]
    if name != CORE:
        paths = [path for path in _paths(LANES[name], kind) if (root / path).exists()]
        return [*paths, *(f"--ignore={path}" for path in NIGHTLY if _is_in(path, paths))]
    if kind == "unit":
        packages = sorted(str(path.relative_to(root)) for path in root.glob("packages/*/tests"))
        everything, elsewhere = ["tests", *(path for path in packages if path not in of_lanes)], of_lanes
    else:
        everything, elsewhere = ["e2e"], [*of_lanes, *NIGHTLY]
    return [*everything, *(f"--ignore={path}" for path in elsewhere if (root / path).exists())]


def _paths(lane: Lane, kind: str) -> tuple[str, ...]:
    return lane.unit if kind == "unit" else lane.e2e


def chosen(root: Path) -> dict[str, str]:
    """Say for each lane why it has to run; empty where it does not."""
    try:
        changed = changes(root)
    except UnknownChangesError as error:
        return dict.fromkeys(LANES, str(error))
    if not changed:
        return dict.fromkeys(LANES, "")
    graph = imports(root)
    return {name: reason_of(lane, changed, used_by(lane, graph), root) for name, lane in LANES.items()}


def reason_of(lane: Lane, changed: Iterable[str], used: AbstractSet[str], root: Path) -> str:
    """Say which of the changed files the lane uses first; empty where it uses none."""
    read_by_others = [path for other in LANES.values() if other is not lane for path in other.reads]
    for path in changed:
        if not path.endswith(".py"):
            is_used = _is_in(path, lane.reads) or not _is_in(path, [*read_by_others, *NOT_READ])
        else:
            # Who has imported a module that is gone cannot be known any more.
            is_used = path in used or not (root / path).exists()
        if is_used:
            return f"{path} has changed"
    return ""


def used_by(lane: Lane, graph: Mapping[str, Iterable[str]]) -> set[str]:
    """Give the files that the tests and the processes of a lane import, the tests themselves included."""
    left = [path for path in graph if _is_in(path, [*lane.unit, *lane.e2e, *lane.runs, "hack/lanes.py"])]
    found: set[str] = set()
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += graph.get(path, ())
            # Importing a module imports its packages, and pytest loads what tests of a directory have in common.
            above = [parent / name for parent in PurePath(path).parents for name in ("__init__.py", "conftest.py")]
            left += [str(each) for each in above if str(each) in graph]
    return found


def imports(root: Path) -> dict[str, list[str]]:
    """Give for each Python file those that it imports, also for types alone and inside of functions."""
    command = [str(Path(sys.executable).with_name("ruff")), "analyze", "graph", "--quiet"]
    answer = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    graph: dict[str, list[str]] = json.loads(answer)
    return graph


class UnknownChangesError(ValueError):
    """It is not known what has changed since all tests have passed."""


def changes(root: Path) -> list[str]:
    """Give the files that differ from the verified commit, committed or not.

    Raises:
        UnknownChangesError: no commit is verified, or it is not one that this checkout builds on.
    """
    try:
        commit = (root / VERIFIED).read_text().strip()
    except FileNotFoundError:
        raise UnknownChangesError(f"there is no {VERIFIED}") from None
    git = ["git", "-C", str(root)]
    if subprocess.run(
        [*git, "merge-base", "--is-ancestor", commit, "HEAD"], capture_output=True, check=False
    ).returncode:
        raise UnknownChangesError(f"the commit of {VERIFIED} is not among those that HEAD builds on")
    listed = (
        ["diff", "--name-only", "--no-renames", "-z", commit, "--"],
        ["ls-files", "--others", "--exclude-standard", "-z"],
    )
    answers = [subprocess.run([*git, *each], capture_output=True, check=True, text=True).stdout for each in listed]
    return sorted({path for answer in answers for path in answer.split("\0") if path})


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
