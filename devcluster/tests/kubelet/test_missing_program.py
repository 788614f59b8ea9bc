"""Advice about programs that this machine lacks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from trainer_devcluster.kubelet.missing_program import EXTRAS, explained
from trainer_devcluster.kubelet.shim.reports import NOT_FOUND

ROOT = Path(__file__).parents[3]
PACKAGE_OF = {"torchrun": "torch", "tune": "torchtune"}
"""Where the package is not called like its program."""


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        pytest.param("torchrun", "pip install 'trainer-operator[examples-torch]' into that environment", id="extra"),
        pytest.param("mpirun", "install mpirun on this machine, such as Debian's package openmpi-bin", id="package"),
        pytest.param("unknown", "install unknown there", id="another"),
    ],
)
def test_missing_program(program: str, remedy: str) -> None:
    """The error says that images are not pulled, where programs come from, and what to install."""
    problem = f'exec: "{program}": {NOT_FOUND}'
    assert explained(problem, program, {"PATH": "/venv/bin:/usr/bin"}) == (
        f"{problem}: the dev cluster pulls no images, containers run what the environment of /venv/bin and this "
        f"machine have; {remedy}"
    )


def test_other_problems() -> None:
    """They are as the shim has told them."""
    problem = 'exec: "/bin/x": permission denied'
    assert explained(problem, "/bin/x", {"PATH": "/venv/bin"}) == problem


@pytest.mark.parametrize("program", EXTRAS)
def test_extras(program: str) -> None:
    """Each extra exists, and has the package that brings the program."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    packages = [requirement.split("==")[0] for requirement in extras[EXTRAS[program]]]
    assert PACKAGE_OF.get(program, program) in packages
