"""Chooses the files that are packed with a script; refuses files that cannot be packed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from trainer.cli.console import printable, size
from trainer.cli.errors import BadInputError
from trainer.cli.run.ignores import IGNORE_FILE, Ignores, Verdict
from trainer.cli.run.requirements import PROJECT, REQUIREMENTS, included_files

MOST_FILES = 10_000
MOST_BYTES = 64 * 1024 * 1024
"""Limit of the bytes of all files before compression; a larger folder would not fit afterwards, and is not read."""
_LARGEST = 5
"""How many of the largest files the error about a folder names."""


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One packed file."""

    name: str
    """Relative to the folder, with slashes."""
    path: Path
    size: int
    mode: int
    """0755 for what its owner may execute, else 0644, whatever the umask of this machine."""
    link: str = ""
    """What a symbolic link to something in the folder points at, relative to its own folder."""


def _unsaid(name: str) -> None:
    """Leave a file out without a word."""


def files_of_folder(folder: Path, *, left_out: Callable[[str], None] = _unsaid) -> list[PackedFile]:
    """All files of a folder that are not ignored, by name.

    Args:
        folder: what is packed.
        left_out: called with each file or folder, the latter with a slash at its end, that is not packed because it
            probably holds secrets. Default: nothing.

    Raises:
        BadInputError: too many or too large, a symbolic link that leaves the folder, or something unreadable.
    """
    root = folder.resolve()
    return _bounded(_walk(root, root, Ignores.of(root), left_out), root)


def files_of_script(
    script: Path, beside: Iterable[Path], *, left_out: Callable[[str], None] = _unsaid
) -> list[PackedFile]:
    """A script, the modules beside it, its requirements and what they include, by name; see `files_of_folder`.

    One that is a symbolic link travels as the file itself, because what it points at is not packed.
    """
    root = script.parent.resolve()
    chosen = {root / script.name, *(root / path.name for path in beside)}
    chosen |= {root / name for name in (REQUIREMENTS, PROJECT) if (root / name).is_file()}
    chosen |= {root / name for name in included_files(root)}
    return _chosen(root, chosen, left_out)


def files_of_modules(
    folder: Path, modules: Iterable[Path], *, left_out: Callable[[str], None] = _unsaid
) -> list[PackedFile]:
    """Modules and packages of a folder, by name; see `files_of_script`."""
    root = folder.resolve()
    return _chosen(root, {root / path.name for path in modules}, left_out)


def _chosen(root: Path, chosen: Iterable[Path], left_out: Callable[[str], None]) -> list[PackedFile]:
    ignores = Ignores.of(root)

    def packed() -> Iterator[PackedFile]:
        for path in sorted(chosen):
            if path.is_dir():
                yield from _walk(root, path, ignores.below(path), left_out)
            else:
                yield _packed(root, path, follows_link=True)

    return _bounded(packed(), root)


def too_large(files: Iterable[PackedFile], problem: str) -> BadInputError:
    """The error about files that do not fit, with the largest of them."""
    largest = sorted(files, key=lambda file: -file.size)[:_LARGEST]
    names = ", ".join(f"{printable(file.name)} ({size(file.size)})" for file in largest)
    return BadInputError(
        f"{problem}; the largest files are {names}: list what the training does not need in {IGNORE_FILE}, fetch data "
        "in the training, or have the code fetched with --code-from git+https://HOST/REPOSITORY@COMMIT"
    )


def _walk(root: Path, folder: Path, ignores: Ignores, left_out: Callable[[str], None]) -> Iterator[PackedFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        _unreadable(root, folder, error)
    for entry in entries:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        verdict = ignores.match(path, is_folder=is_folder)
        if verdict is Verdict.SECRET:
            left_out(path.relative_to(root).as_posix() + ("/" if is_folder else ""))
        if verdict is not Verdict.PACKED:
            continue
        if is_folder:
            yield from _walk(root, path, ignores.below(path), left_out)
        elif entry.is_file(follow_symlinks=False) or entry.is_symlink():  # neither a socket nor a device
            yield _packed(root, path)


def _packed(root: Path, path: Path, *, follows_link: bool = False) -> PackedFile:
    name = path.relative_to(root).as_posix()
    try:
        target = _link(root, path) if path.is_symlink() else ""
        link = "" if follows_link else target
        status = path.lstat() if link else path.stat()
        if not link and not os.access(path, os.R_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        _unreadable(root, path, error)
    return PackedFile(
        name, path, 0 if link else status.st_size, 0o755 if status.st_mode & stat.S_IXUSR else 0o644, link
    )


def _link(root: Path, path: Path) -> str:
    try:
        target = Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        target = Path(os.path.realpath(path))
        if target.is_relative_to(root) and not _is_ignored(root, target):
            raise BadInputError(
                f"{printable(str(path))} is a symbolic link to nothing: remove it, or list it in {IGNORE_FILE}"
            ) from None
    if not target.is_relative_to(root):
        raise BadInputError(
            f"{printable(str(path))} is a symbolic link that leaves the folder {root}: put the file itself there, or "
            f"list the link in {IGNORE_FILE}"
        )
    return os.path.relpath(target, path.parent)


def _is_ignored(root: Path, target: Path) -> bool:
    """Whether a file that is not there would stay behind, such as one that trainings write."""
    ignores, folder = Ignores.of(root), root
    for part in target.relative_to(root).parent.parts:
        folder /= part
        if ignores.match(folder, is_folder=True) is not Verdict.PACKED:
            return True
        ignores = ignores.below(folder)
    return any(ignores.match(target, is_folder=is_folder) is not Verdict.PACKED for is_folder in (False, True))


def _unreadable(root: Path, path: Path, error: OSError) -> NoReturn:
    name = printable(path.relative_to(root).as_posix())
    raise BadInputError(
        f"{name} of {root} cannot be read: {error.strerror}: make it readable, or list it in {IGNORE_FILE}"
    ) from None


def _bounded(files: Iterator[PackedFile], root: Path) -> list[PackedFile]:
    """The files as a list; stops at the first that is one too many."""
    found: list[PackedFile] = []
    total = 0
    for file in files:
        found.append(file)
        total += file.size
        if len(found) > MOST_FILES:
            raise too_large(found, f"{root} has more than {MOST_FILES} files")
    if total > MOST_BYTES:
        raise too_large(
            found, f"the {len(found)} files of {root} have {size(total)}, at most {size(MOST_BYTES)} are packed"
        )
    return sorted(found, key=lambda file: file.name)
