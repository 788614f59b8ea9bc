"""Source distributions and wheels, built twice and compared byte by byte."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from hack.release.settings import ROOT, Release
from hack.release.source import stage

_OTHER_MACHINE = {"PYTHONHASHSEED": "1", "TZ": "Pacific/Auckland", "LC_ALL": "C"}
"""What differs in the second build, besides its folder, and must not show."""


class NotReproducibleError(Exception):
    """Two builds of one commit differ."""


def build(release: Release, output: Path, workspace: Path, root: Path = ROOT) -> tuple[Path, ...]:
    """Build every distribution of the release, and give the files.

    The second build makes each wheel from its source distribution, as whoever installs without wheels does.

    Args:
        release: the commit.
        output: the folder of the files; what it has already stays.
        workspace: an empty folder.
        root: the repository.

    Raises:
        NotReproducibleError: the builds differ; it names the file, and the first member of it that differs.
    """
    first, second = workspace / "first", workspace / "second-in-another-place"
    for folder in stage(release, first / "source", root):
        _build(folder, first / "built", release, ("--sdist", "--wheel"), {"PYTHONHASHSEED": "0", "TZ": "UTC"})
    for folder in stage(release, second / "source", root):
        _build(folder, second / "built", release, (), _OTHER_MACHINE)
    compare(first / "built", second / "built")
    output.mkdir(parents=True, exist_ok=True)
    return tuple(path.rename(output / path.name) for path in sorted((first / "built").iterdir()))


def _build(folder: Path, output: Path, release: Release, formats: Iterable[str], variables: Mapping[str, str]) -> None:
    command: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", *formats, "--outdir", output, folder]
    environment = os.environ | variables | {"SOURCE_DATE_EPOCH": str(release.epoch)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{folder.name} could not be built:\n{done.stdout}{done.stderr}")


def compare(first: Path, second: Path) -> None:
    """Compare the files of two folders.

    Raises:
        NotReproducibleError: they differ.
    """
    names = [sorted(path.name for path in folder.iterdir()) for folder in (first, second)]
    if names[0] != names[1]:
        raise NotReproducibleError(f"one build made {', '.join(names[0])}, the other {', '.join(names[1])}")
    for name in names[0]:
        if (first / name).read_bytes() != (second / name).read_bytes():
            raise NotReproducibleError(f"{name}: two builds differ{_difference(first / name, second / name)}")


def _difference(first: Path, second: Path) -> str:
    contents = [members(first), members(second)]
    differing = sorted({name for name, _ in contents[0].items() ^ contents[1].items()})
    return f", first in {differing[0]}" if differing else " in the order or the attributes of their members"


def members(archive: Path) -> dict[str, bytes]:
    """Give the files in a wheel or a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as source:
        found = ((member.name, source.extractfile(member)) for member in source)
        return {name: stream.read() for name, stream in found if stream is not None}


def check_metadata(files: Iterable[Path]) -> None:
    """Check that a package index accepts metadata and readme of each file, as `twine check --strict` does.

    Raises:
        RuntimeError: it would refuse one.
    """
    command: list[str | Path] = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, env=os.environ | {"COLUMNS": "200"}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"a package index would refuse what was built:\n{done.stdout}{done.stderr}")
