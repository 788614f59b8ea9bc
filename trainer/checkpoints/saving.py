"""Writing a checkpoint: by rank 0 alone, or by all ranks where each has a part of the state.

All ranks come here with the same step. Where all write, rank 0 makes the directory, all write into it, and rank 0 gives
it its name once all have; each says how it went, so that nobody waits for one that has failed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.checkpoints import ranks, settings, sharded_state, state, store, trees

_SECONDS = 600.0
"""How long ranks wait for each other while they save."""
_LATE_SECONDS = 30.0
"""How long a network file system may take to show a directory on another node."""
_FAILED = 1 << 20
"""What a rank that has failed adds to a counter of those that have done something."""


class NotSharedError(Exception):
    """Nodes have directories of their own."""


class SaidElsewhereError(Exception):
    """Why there is no checkpoint has been said already, or is by another rank."""


def save(given: object, step: int, group: ranks.Group | None) -> Path | None:
    """Write a checkpoint, and delete old ones; returns its path, None after saying why there is none.

    Other ranks than 0 that have nothing to write return at once.
    """
    directory = settings.directory()
    if directory is None:
        return None
    rank = ranks.rank() if group is None else group.rank
    try:
        values = state.values_of(given)
        if group is not None and (state.has_own(values) or sharded_state.is_sharded(values) or trees.is_tree(values)):
            together(directory, store.step_name(step), group, lambda path: _write(values, path, group.rank))
        elif rank == 0:
            _check_writable()
            with store.begin(directory, step) as path:
                _write(values, path, rank)
    except Exception as error:
        say_failed(step, directory, error)
        return None
    final = directory / store.step_name(step)
    if rank == 0:
        settings.resolved("save")
        store.prune(directory, settings.keep(), spared=final)
    return final


def say_failed(step: int, directory: Path, error: Exception) -> None:
    """Say why there is no checkpoint after a step, unless another rank does."""
    if not isinstance(error, SaidElsewhereError):
        why = str(error) if isinstance(error, NotSharedError) else settings.reason(error, directory)
        settings.complain("save", f"no checkpoint of step {step}: {why}", rank=ranks.rank())


def _check_writable() -> None:
    if settings.writable() is None:
        raise SaidElsewhereError


def _write(values: dict[str, Any], path: Path, rank: int) -> None:
    """Write what this rank has to."""
    state.write_own(values, path, rank)
    if sharded_state.is_sharded(values):
        sharded_state.write(values, path)
    elif trees.is_tree(values):
        trees.write(values, path)
    elif rank == 0:
        state.write(values, path)


def together(directory: Path, name: str, group: ranks.Group | None, write: Callable[[Path], object]) -> None:
    """Have all ranks write into one checkpoint, which gets its name once all have.

    Raises:
        SaidElsewhereError: another rank has failed.
        Exception: this one has; the former checkpoints stay.
    """
    path, key = store.partial(directory, name), turn(group)

    def begin() -> None:
        _check_writable()
        store.start(directory, name)

    try:
        first(group, f"{key}/begin", begin)
        if group is not None:
            every(group, f"{key}/see", lambda: _see(path, group))
        every(group, f"{key}/write", lambda: write(path))
        first(group, f"{key}/end", lambda: store.finish(directory, name))
    except BaseException:
        if group is None or group.rank == 0:
            shutil.rmtree(path, ignore_errors=True)
        raise


def turn(group: ranks.Group | None) -> str:
    """What the counters of the next checkpoint are called, on all ranks."""
    return "" if group is None else group.turn("save")


def _see(path: Path, group: ranks.Group) -> None:
    until = group.clock() + _LATE_SECONDS
    while not path.is_dir():
        if group.clock() > until:
            raise NotSharedError("this node does not see what rank 0 writes; mount one directory on all nodes")
        group.sleep(0.5)


def first(group: ranks.Group | None, key: str, action: Callable[[], object]) -> None:
    """Have rank 0 do something; the others wait until it has.

    Raises:
        SaidElsewhereError: it has failed, and this is another rank.
        Exception: this rank has failed.
    """
    if group is not None:
        _do(group, key, action if group.rank == 0 else None, 1)
    elif ranks.rank() == 0:
        action()


def every(group: ranks.Group | None, key: str, action: Callable[[], object]) -> None:
    """Have all ranks do something, and wait for each other.

    Raises:
        SaidElsewhereError: another rank has failed.
        Exception: this rank has failed.
    """
    if group is None:
        action()
    else:
        _do(group, key, action, group.size)


def _do(group: ranks.Group, key: str, action: Callable[[], object] | None, enough: int) -> None:
    try:
        if action is not None:
            action()
    except BaseException:
        group.add(key, _FAILED)
        raise
    if action is not None:
        group.add(key, 1)
    if group.wait(key, enough, lambda: _SECONDS) >= _FAILED:
        raise SaidElsewhereError
