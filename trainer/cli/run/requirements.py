"""What a script requires: a requirements.txt with the files that it includes, else a pyproject.toml."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.kube.objects import mapping_at

REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"
_OPTIONS = ("-r", "-c", "--requirement", "--constraint")
"""Options of pip's format that read another file: `-r FILE`, `-rFILE`, `--requirement FILE`, `--constraint=FILE`."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
_PACKAGE = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:")
_MOST_FILES = 100


def included_files(folder: Path) -> list[str]:
    """The files that the requirements.txt of a folder includes, however indirectly, relative to the folder.

    Raises:
        BadInputError: one is not there, is not in the folder, or cannot be read; names the file and the line.
    """
    root = folder.resolve()
    if not (root / REQUIREMENTS).is_file():
        return []
    found: dict[str, None] = {}
    waiting = [REQUIREMENTS]
    while waiting:
        file = waiting.pop()
        for number, line in enumerate(_lines(root, file), start=1):
            name = _included(line)
            if not name or _URL.match(name) or "${" in name:  # pip reads URLs and variables in the pod
                continue
            path = os.path.normpath(Path(file).parent / name)
            where = f"{printable(file)} of {root}, line {number}"
            if Path(name).is_absolute() or path.startswith(".."):
                raise BadInputError(f"{where}: {printable(name)} is not in the folder of the code: put it there")
            if not (root / path).is_file():
                raise BadInputError(f"{where}: there is no file {printable(path)}")
            if path not in found and path != REQUIREMENTS:
                found[path] = None
                waiting.append(path)
            if len(found) > _MOST_FILES:
                raise BadInputError(f"{where}: more than {_MOST_FILES} files are included")
    return list(found)


def _lines(root: Path, file: str) -> list[str]:
    try:
        return (root / file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInputError(f"{printable(file)} of {root} cannot be read: {error.strerror}") from None


def _included(line: str) -> str:
    """The file that a line includes; empty for any other line."""
    comment = _COMMENT.search(line)
    words = (line if comment is None else line[: comment.start()]).strip()
    for option in _OPTIONS:
        rest = words.removeprefix(option)
        if rest != words and (len(option) == len("-r") or not rest or rest[0] in " \t="):
            return rest.strip().removeprefix("=").strip().strip("'\"")
    return ""


def project_requirements(folder: Path) -> list[str]:
    """The dependencies that a pyproject.toml states.

    Raises:
        BadInputError: the file is no TOML, or its dependencies are no list.
    """
    project = _project(folder).get("project", {})
    stated = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(stated, list) or not all(isinstance(each, str) for each in stated):
        raise BadInputError(
            f"{folder / PROJECT}: project.dependencies: must be a list of requirements, such as numpy>=2"
        )
    return stated


def required_packages(folder: Path) -> set[str]:
    """The names of the packages that are installed before the start, in small letters."""
    files = [REQUIREMENTS, *included_files(folder)] if (folder / REQUIREMENTS).is_file() else []
    lines = [line for file in files for line in _lines(folder, file)] if files else project_requirements(folder)
    return names_of_packages(lines)


def names_of_packages(lines: Iterable[str]) -> set[str]:
    """The names of packages in lines of a requirements.txt, in small letters."""
    return {found[1].lower() for line in lines if (found := _PACKAGE.match(line))}


def check_packages(packages: Iterable[str]) -> None:
    """Check lines for a requirements.txt that nobody keeps as a file.

    Raises:
        BadInputError: one has several lines, or includes a file.
    """
    for each in packages:
        if len(each.splitlines()) != 1 or _included(each):
            raise BadInputError(
                f"packages: {printable(each)!r}: must be one requirement, such as numpy>=2, or an option of pip that "
                "reads no file"
            )


def unread_requirements(folder: Path) -> str:
    """The table of a pyproject.toml with dependencies that only a build tool can read; empty if there is none."""
    tables = _project(folder)
    if mapping_at(tables, "project").get("dependencies"):
        return ""
    if mapping_at(tables, "tool", "poetry", "dependencies").keys() - {"python"}:
        return "tool.poetry.dependencies"
    dynamic = mapping_at(tables, "project").get("dynamic")
    return "project.dynamic" if isinstance(dynamic, list) and "dependencies" in dynamic else ""


def _project(folder: Path) -> dict[str, Any]:
    """A pyproject.toml; empty without one."""
    file = folder / PROJECT
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file}: {printable(str(error))}") from None
    except OSError:
        return {}
