"""The state of a training with JAX: a tree of arrays, which Orbax writes and loads, sharded or not.

Arrays that each process has for itself are no such tree for several processes: rank 0 writes its own as they are.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.checkpoints.state import RandomState, values_of

_DIRECTORY = "orbax"


def is_in(directory: Path) -> bool:
    """Whether a checkpoint is a tree."""
    return (directory / _DIRECTORY).exists()


def is_tree(values: Mapping[str, Any]) -> bool:
    """Whether there are arrays of JAX in a state that are not all there in each process, or that Orbax can write."""
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    arrays = [each for each in jax.tree_util.tree_leaves(dict(values)) if isinstance(each, jax.Array)]
    if not arrays or not all(each.is_fully_addressable for each in arrays):
        return bool(arrays)
    return int(jax.process_count()) == 1 and importlib.util.find_spec("orbax") is not None


def write(values: Mapping[str, Any], directory: Path) -> None:
    """Write the part of this process, and wait for the others.

    Raises:
        ModuleNotFoundError: there is no Orbax.
        Exception: whatever Orbax or the disk refuse.
    """
    from orbax import checkpoint  # noqa: PLC0415 there only where a training has it

    with checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save((directory / _DIRECTORY).absolute(), _without_random(values))


def read(directory: Path, into: object) -> dict[str, Any]:
    """A tree of arrays, with the shapes and shardings of those of the same names.

    Raises:
        Exception: whatever Orbax refuses.
    """
    from orbax import checkpoint  # noqa: PLC0415 as above

    import jax  # noqa: PLC0415 isort:skip

    target = None if into is None else _without_random(values_of(into))
    if target is not None:
        target = jax.tree_util.tree_map(checkpoint.utils.to_shape_dtype_struct, target)
    with checkpoint.StandardCheckpointer() as checkpointer:
        return dict(checkpointer.restore((directory / _DIRECTORY).absolute(), target))


def _without_random(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not isinstance(value, RandomState)}
