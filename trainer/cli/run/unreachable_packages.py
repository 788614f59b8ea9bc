"""Packages that pods of the dev cluster cannot install: said before anything is submitted."""

from __future__ import annotations

import configparser
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from anyio.to_thread import run_sync

from trainer.cli.console import note, printable
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.run.requirements import Requirements, normalized
from trainer.kube.errors import KubeError
from trainer.kube.field_errors import listed
from trainer.kube.objects import annotations_of
from trainer.kube.resource import NODES

NODE: Final = "laptop"
"""The Node of a dev cluster of `trainer up`."""
POD_NETWORK: Final = "devcluster.trainer/pod-network"
"""Its annotation that says how pods get their network."""
PYTHON: Final = "devcluster.trainer/python"
"""Its annotation with the interpreter that pods run, whose packages they have."""
_ISOLATED = "netns:"
"""Begins the annotation of pods that reach nothing outside of the machine."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_OF_INSTALLERS = ("PIP_", "UV_")
"""Begins the variables by which users choose an index."""
_PIP_CONFIGURATIONS = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
"""Files that pods of this machine see as well."""
_SOURCES = ("index-url", "extra-index-url", "find-links")


async def warn_of_packages(cluster: ConnectedCluster, requirements: Requirements, variables: Iterable[str]) -> None:
    """Warn of packages that neither the environment of the pods nor a folder of this machine has.

    Nothing is said of a cluster whose pods may reach an index, and where the user has chosen one.

    Args:
        cluster: where the pods will run.
        requirements: of the script.
        variables: names of variables that the TrainJob gets.
    """
    if not requirements.packages or requirements.chooses_index or any(map(_is_of_installer, variables)):
        return
    if urlsplit(cluster.server).hostname not in _LOOPBACK:
        return
    try:
        node = annotations_of(await cluster.client.get(NODES, NODE))
    except KubeError:
        return
    if node.get(POD_NETWORK, "").startswith(_ISOLATED):
        problem = await run_sync(_problem, requirements, node.get(PYTHON, ""))
        if problem:
            note(problem, kind="warning")


def _is_of_installer(variable: str) -> bool:
    return variable.startswith(_OF_INSTALLERS)


def _problem(requirements: Requirements, python: str) -> str:
    present = {package for directory in _directories(Path(python)) for package in _installed(directory)}
    if not present:  # it is not on this machine
        return ""
    sources = [*_local_sources()]
    lost = [name for name in requirements.packages if name not in present and not _is_at_hand(name, sources)]
    if not lost:
        return ""
    installer = f"{shlex.quote(python)} -m pip install"
    if "pip" not in present:
        installer = f"uv pip install --python {shlex.quote(python)}"
    file = requirements.file
    what = " ".join(lost) if file is None else f"-r {shlex.quote(os.path.relpath(file))}"
    return (
        f"pods of the dev cluster reach no package index, and their environment lacks {printable(listed(lost))}: "
        f"install it there before ({printable(f'{installer} {what}')})"
    )


def _directories(python: Path) -> list[Path]:
    """The directories with the packages of an interpreter, which is not run: it may be anybody's."""
    if str(python) == sys.executable:
        return [Path(each) for each in sys.path if each.endswith("-packages")]
    return [*python.parent.parent.glob("lib/python3*/*-packages")] if python.is_absolute() else []


def _installed(directory: Path) -> Iterator[str]:
    for found in directory.glob("*-info"):
        yield normalized(found.name.partition("-")[0].removesuffix(".egg"))


def _local_sources() -> Iterator[Path]:
    """Folders with packages in the configuration of pip."""
    for name in _PIP_CONFIGURATIONS:
        settings = configparser.RawConfigParser(strict=False)
        try:
            settings.read_string(Path(os.path.expanduser(name)).read_text(encoding="utf-8"))  # noqa: PTH111 - fails without a home
        except (OSError, ValueError, configparser.Error):
            continue
        for section in ("global", "install"):
            for option in _SOURCES:
                for source in settings.get(section, option, fallback="").split():
                    url = urlsplit(source)
                    if url.scheme in {"", "file"}:
                        yield Path(unquote(url.path))


def _is_at_hand(name: str, sources: Iterable[Path]) -> bool:
    """Whether a folder of files, or one with a folder for each package, has a package."""
    pattern = "".join("[-_.]" if letter == "-" else f"[{letter}{letter.upper()}]" for letter in name)
    return any(_has(source, name, pattern) for source in sources)


def _has(source: Path, name: str, pattern: str) -> bool:
    try:
        return (source / name).is_dir() or any(source.glob(f"{pattern}-*"))
    except OSError:  # whoever runs this may not look
        return False
