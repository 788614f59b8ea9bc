"""What a script imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.cli.run.imports import imports_of


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        pytest.param("import torch.nn as nn, os", {"torch", "os"}, id="import"),
        pytest.param("from jax.numpy import dot", {"jax"}, id="from"),
        pytest.param("pattern = '\\d'\nimport torch", {"torch"}, id="an escape that Python warns of"),
    ],
)
def test_modules(tmp_path: Path, source: str, modules: set[str]) -> None:
    """The first words of imported modules are found in every kind of statement and place."""
    script = tmp_path / "train.py"
    script.write_text(source)

    found = imports_of(script)

    assert (found.modules, found.beside, found.syntax_error) == (modules, set(), "")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b"import torch\nprint 'old'\n", id="syntax of another Python"),
        pytest.param(b"import torch\nx = '\xff'\n", id="not UTF-8"),
        pytest.param(b"import torch\n" + b"(" * 100_000, id="too deep"),
    ],
)
def test_syntax_error(tmp_path: Path, source: bytes) -> None:
    """Imports of what cannot be parsed are guessed, and the error is known."""
    script = tmp_path / "train.py"
    script.write_bytes(source)

    found = imports_of(script)

    assert found.modules == {"torch"}
    assert found.syntax_error


def test_modules_beside_the_script(tmp_path: Path) -> None:
    """Modules and packages beside the script are followed, in circles as well, and their imports count."""
    (tmp_path / "train.py").write_text("import model, data.loading")
    (tmp_path / "model.py").write_text("import train, layers")
    (tmp_path / "layers.py").write_text("import torch")
    (tmp_path / "unused.py").write_text("import jax")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "loading.py").write_text("import numpy\nfrom .other import x")

    found = imports_of(tmp_path / "train.py")

    assert {path.name for path in found.beside} == {"model.py", "layers.py", "data"}
    assert found.modules == {"torch", "numpy", "train"}
