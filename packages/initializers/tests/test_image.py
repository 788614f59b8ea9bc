from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_HIDDEN = ("aiohttp", "kubernetes_asyncio", "msgspec", "prometheus_client", "pydantic", "structlog", "typer")
"""Packages of the operator that the image of the initializers does not have."""

_PROGRAM = """
import importlib.abc, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
import {module}
loaded = {{name for name in sys.modules if name.startswith("trainer.")}}
print(sorted(loaded))
"""


@pytest.mark.parametrize("module", ["__main__", "web", "object_store", "hub"])
def test_modules_need_the_extra_only(module: str) -> None:
    """Everything can be imported where only the packages of the extra are, and loads nothing else of the operator."""
    program = _PROGRAM.format(hidden=_HIDDEN, module=f"trainer_initializers.{module}")
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    expected = ["trainer.progress", "trainer.progress.report"] if module == "__main__" else []
    assert result.stdout.strip() == str(expected)
