"""A directory of checkpoints, each in a directory of its own that has its name only once it is complete.

One is written under a hidden name, brought to the disk and then renamed, so whatever ends a process in between leaves
the former ones as they were. The file `.owner` names the training whose directory it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

STEPS = ("step-*",)
"""Names of checkpoints of this package; `*` is the number of a step."""
OWNER = ".owner"
_OWNER_LIMIT = 1024
_PARTIAL, _REPLACED, _DELETED = ".partial-", ".replaced-", ".deleted-"
"""What hidden names begin with: of what is not complete yet, of what gives way to another one of its step, and counts
until that is there, and of what is being deleted."""


def step_name(step: int) -> str:
    """The name of the checkpoint after a step."""
    return STEPS[0].replace("*", str(step))


def complete(directory: Path, patterns: Sequence[str] = STEPS) -> list[tuple[int, Path]]:
    """Complete checkpoints with their steps, the newest last; none where nothing can be read."""
    expressions = [re.compile(re.escape(each).replace(r"\*", "([0-9]{1,18})", 1)) for each in patterns]
    found: dict[str, tuple[int, Path]] = {}
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name.rpartition(_REPLACED)[2]
            for match in filter(None, (expression.fullmatch(name) for expression in expressions)):
                if entry.is_dir() and (name == entry.name or name not in found):
                    found[name] = int(match[1]), directory / entry.name
    return sorted(found.values())


def newest(directory: Path, patterns: Sequence[str] = STEPS) -> tuple[int, Path] | None:
    """The complete checkpoint of the highest step, if there is any."""
    found = complete(directory, patterns)
    return found[-1] if found else None


def partial(directory: Path, name: str) -> Path:
    """Where a checkpoint is written before it is complete; the same path in all processes of a training."""
    return directory / f"{_PARTIAL}{name}"


def start(directory: Path, name: str) -> Path:
    """Make the directory to write into, without what an earlier attempt has left there."""
    for replaced in directory.glob(f"{_REPLACED}*"):
        present = directory / replaced.name[len(_REPLACED) :]
        if not present.exists():
            replaced.rename(present)
    for leftover in (each for prefix in (_PARTIAL, _REPLACED, _DELETED) for each in directory.glob(f"{prefix}*")):
        shutil.rmtree(leftover, ignore_errors=True)
    path = partial(directory, name)
    path.mkdir(parents=True)
    return path


def finish(directory: Path, name: str) -> Path:
    """Bring to the disk what has been written and give it its name.

    Raises:
        OSError: it cannot be made lasting; the former checkpoints stay.
    """
    path, final = partial(directory, name), directory / name
    sync_tree(path)
    if final.exists():
        # No call replaces a directory that is not empty.
        final.rename(directory / f"{_REPLACED}{name}")
    path.rename(final)
    _sync(directory)
    shutil.rmtree(directory / f"{_REPLACED}{name}", ignore_errors=True)
    return final


@contextlib.contextmanager
def begin(directory: Path, step: int) -> Iterator[Path]:
    """An empty directory that becomes the checkpoint after this step when the block ends, and goes when it raises.

    Raises:
        OSError: it cannot be written; the former checkpoints stay.
    """
    name = step_name(step)
    try:
        yield start(directory, name)
        finish(directory, name)
    except BaseException:
        shutil.rmtree(partial(directory, name), ignore_errors=True)
        raise


def prune(directory: Path, keep: int, patterns: Sequence[str] = STEPS, spared: Path | None = None) -> None:
    """Delete all but the newest ones and a spared one; what cannot be deleted stays."""
    for _, path in complete(directory, patterns)[: -max(keep, 1)]:
        if path == spared:  # written last by a training that has begun anew
            continue
        hidden = path.with_name(f"{_DELETED}{path.name}")
        with contextlib.suppress(OSError):
            path.rename(hidden)  # else a process that ends here would leave half of it under its name
            shutil.rmtree(hidden)


def owner_of(directory: Path) -> str:
    """The training that the directory belongs to; "" for none.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        with (directory / OWNER).open(encoding="utf-8", errors="replace") as file:
            return file.read(_OWNER_LIMIT).strip()
    except FileNotFoundError:
        return ""


def claim(directory: Path, owner: str) -> str:
    """Make the directory that of a training unless it belongs to one already; returns whose it is then.

    Raises:
        OSError: the directory cannot be written.
    """
    present = owner_of(directory)
    if present or not owner:
        return present
    draft = directory / f"{OWNER}-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        draft.write_text(f"{owner}\n", encoding="utf-8")
        try:
            os.link(draft, directory / OWNER)  # fails when another training was faster
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            draft.rename(directory / OWNER)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    return owner_of(directory)


def sync_tree(path: Path) -> None:
    """Bring a directory and all that is below it to the disk."""
    for parent, _, names in os.walk(path):
        for name in names:
            _sync(Path(parent, name))
        _sync(Path(parent))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # file systems that cannot do it for directories need it for none
            raise
    finally:
        os.close(descriptor)
