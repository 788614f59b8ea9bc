"""What pods of the dev cluster need for some frameworks, being processes of this machine."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

_PROGRAMS = {"openmpi-bin": "mpirun.openmpi", "openssh-server": "sshd"}
"""By what it is known that a Debian package is there."""


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips tests on machines without these Debian packages, and on clusters whose pods have images of their own."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    missing = [package for package in packages if shutil.which(_PROGRAMS[package], path=path) is None]
    if "E2E_KUBECONFIG" in os.environ:
        return pytest.mark.skip(reason="the images of this cluster's pods are not known to have MPI and sshd")
    return pytest.mark.skipif(bool(missing), reason=f"needs the Debian packages {' '.join(missing)}")


def needs_module(*modules: str) -> pytest.MarkDecorator:
    """Skips tests where one of these modules is not installed."""
    missing = [module for module in modules if find_spec(module) is None]
    reason = f"{' and '.join(missing)} not installed: make nightly installs what frameworks need"
    return pytest.mark.skipif(bool(missing), reason=reason)


MPI = needs("openmpi-bin", "openssh-server")
