"""The front door."""

from __future__ import annotations

import ast
import subprocess
import sys
from inspect import getsource

import pytest

from trainer import kube


def test_front_door_loads_what_type_checkers_see() -> None:
    """Each name that is imported for type checkers is loaded from the same module when a program uses it."""
    declared = {
        alias.name: node.module
        for node in ast.walk(ast.parse(getsource(kube)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trainer.")
        for alias in node.names
    }
    assert set(declared) == {name for name in dir(kube) if name in declared}
    for name, module in declared.items():
        assert getattr(kube, name) is getattr(sys.modules[str(module)], name)


def test_front_door_has_no_other_names() -> None:
    """A name that is not exported is an AttributeError that says so."""
    with pytest.raises(AttributeError, match=r"module 'trainer\.kube' has no attribute 'Nobody'"):
        _ = kube.Nobody  # type: ignore[attr-defined]


def test_module_comes_without_the_rest() -> None:
    """A program that needs quantities alone loads neither the servers nor the metrics of the package."""
    program = "import sys, trainer.kube.quantity; print(sorted({'aiohttp', 'prometheus_client'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
