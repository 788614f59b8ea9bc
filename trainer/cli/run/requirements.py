"""The files that a requirements.txt includes, which must travel with it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from trainer.cli.console import printable
from trainer.cli.errors import BadInputError

REQUIREMENTS = "requirements.txt"
_OPTIONS = ("-r", "-c", "--requirement", "--constraint")
"""Options of pip's format that read another file: `-r FILE`, `-rFILE`, `--requirement FILE`, `--constraint=FILE`."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
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
        for number, name in _includes(root, file):
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


def _includes(root: Path, file: str) -> list[tuple[int, str]]:
    """What a file includes, each with the number of its line; pip reads URLs and variables in the pod."""
    try:
        lines = (root / file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInputError(f"{printable(file)} of {root} cannot be read: {error.strerror}") from None
    names = ((number, _included(line)) for number, line in enumerate(lines, start=1))
    return [(number, name) for number, name in names if name and not _URL.match(name) and "${" not in name]


def _included(line: str) -> str:
    """The file that a line includes; empty for any other line."""
    comment = _COMMENT.search(line)
    words = (line if comment is None else line[: comment.start()]).strip()
    for option in _OPTIONS:
        rest = words.removeprefix(option)
        if rest != words and (len(option) == len("-r") or not rest or rest[0] in " \t="):
            return rest.strip().removeprefix("=").strip().strip("'\"")
    return ""
