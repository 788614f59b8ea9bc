"""What to do about a program that a container's image has and this machine lacks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from trainer_devcluster.kubelet.shim.reports import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping

EXTRAS: Final = {
    "accelerate": "examples-transformers",
    "deepspeed": "examples-deepspeed",
    "torchrun": "examples-torch",
    "tune": "examples-torchtune",
}
"""Programs of Python packages, each with the extra of this distribution that installs it."""
PACKAGES: Final = {"mpirun": "openmpi-bin", "mpiexec": "openmpi-bin"}
"""Programs of the operating system, each with Debian's package."""


def explained(problem: str, program: str, environment: Mapping[str, str]) -> str:
    """Why a container could not be started; for a missing program with what to install, and where."""
    if not problem.endswith(NOT_FOUND):
        return problem
    directory = environment.get("PATH", "").split(os.pathsep)[0]
    if program in EXTRAS:
        remedy = f"pip install 'trainer-operator[{EXTRAS[program]}]' into that environment"
    elif program in PACKAGES:
        remedy = f"install {program} on this machine, such as Debian's package {PACKAGES[program]}"
    else:
        remedy = f"install {program} there"
    return (
        f"{problem}: the dev cluster pulls no images, containers run what the environment of {directory} and this "
        f"machine have; {remedy}"
    )
