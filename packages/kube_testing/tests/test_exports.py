"""The front door of the test aids."""

from __future__ import annotations

import ast
from pathlib import Path

import trainer_kube_testing as testing


def test_front_door_lists_what_it_exports() -> None:
    """Every name in `__all__` exists, and every public name is in it; modules are reached by their own names."""
    rooms = {path.stem for path in Path(testing.__file__).parent.iterdir()} - {"statuses"}
    public = {name for name in vars(testing) if not name.startswith("_")} - rooms - {"annotations"}
    assert set(testing.__all__) == public


def test_usable_without_pytest() -> None:
    """The aids import no test framework, so that users may have another."""
    for path in Path(testing.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"pytest", "unittest"}, path.name
