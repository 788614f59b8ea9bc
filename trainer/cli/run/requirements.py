"""What a script requires: a requirements.txt with the files that it includes, else a pyproject.toml."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.kube.objects import mapping_at

REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"
_CONSTRAINTS = ("-c", "--constraint")
_OPTIONS = ("-r", "--requirement", *_CONSTRAINTS)
"""Options of pip's format that read another file: `-r FILE`, `-rFILE`, `--requirement FILE`, `--constraint=FILE`."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
_INDEX_OPTIONS = ("-i", "-f", "--index-url", "--extra-index-url", "--find-links", "--no-index")
_PACKAGE = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)(?=[\s\[(<>=!~;@#,]|$)")
"""The name at the beginning of a line, which no URL has."""
_FILE = re.compile(r"@\s*file:|\.(?:whl|zip|tgz|tar\.[a-z0-9]{2,3})\s*(?:#|$)")
"""In a line for a file that is there: no index has to have it."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:")
_MOST_FILES = 100


def included_files(folder: Path, *, with_constraints: bool = True) -> list[str]:
    """The files that the requirements.txt of a folder includes, however indirectly, relative to the folder.

    Args:
        folder: with the requirements.txt.
        with_constraints: whether those count that only limit versions. Default: yes.

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
            name = "" if not with_constraints and line.lstrip().startswith(_CONSTRAINTS) else _included(line)
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


@dataclass(frozen=True, slots=True)
class Requirements:
    """What is installed before a training starts."""

    lines: tuple[str, ...] = ()
    """Lines of requirements.txt."""
    file: Path | None = None
    """The requirements.txt with them; None where they are stated elsewhere."""

    @classmethod
    def of_folder(cls, folder: Path) -> Requirements:
        """Those of a requirements.txt and of the files that it includes, else of a pyproject.toml.

        Raises:
            BadInputError: see `included_files` and `project_requirements`.
        """
        file = folder / REQUIREMENTS
        if not file.is_file():
            return cls(tuple(project_requirements(folder)))
        files = [REQUIREMENTS, *included_files(folder, with_constraints=False)]
        return cls(tuple(line for each in files for line in _lines(folder, each)), file)

    @property
    def packages(self) -> list[str]:
        """The names of those from an index, normalized; but for those that only some environments need."""
        found = [_PACKAGE.match(line) for line in self.lines if ";" not in line and _FILE.search(line) is None]
        return list(dict.fromkeys(normalized(each[1]) for each in found if each))

    @property
    def names(self) -> set[str]:
        """The names of all packages, normalized."""
        return {normalized(found[1]) for line in self.lines if (found := _PACKAGE.match(line))}

    @property
    def chooses_index(self) -> bool:
        """Whether a line says where packages are found."""
        return any(line.lstrip().startswith(_INDEX_OPTIONS) for line in self.lines)


NOTHING_REQUIRED = Requirements()


def normalized(name: str) -> str:
    """The name of a package as all its spellings have it: `Ruamel_Yaml` is `ruamel-yaml`."""
    return re.sub(r"[-_.]+", "-", name).lower()


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
