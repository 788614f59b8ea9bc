"""The state of a training whose ranks have a part each: FSDP, tensor parallelism, and all else that is of DTensors.

`torch.distributed.checkpoint` writes it: each rank its part, in parallel, and any number of ranks can load it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainer.checkpoints.state import RandomState, values_of

_METADATA = ".metadata"
"""The file that `torch.distributed.checkpoint` writes last."""
_SHARDED = frozenset({"DTensor", "ShardedTensor", "FullyShardedDataParallel"})
"""Classes of tensors and modules of which a rank has a part."""


def is_in(directory: Path) -> bool:
    """Whether a checkpoint is sharded."""
    return (directory / _METADATA).exists()


def is_sharded(values: Mapping[str, Any]) -> bool:
    """Whether this rank has only a part of something."""
    return "torch" in sys.modules and any(type(part).__name__ in _SHARDED for part in _parts(dict(values)))


def _parts(value: Any) -> Iterator[Any]:
    """Modules and tensors, wherever they are."""
    yield value
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _parts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _parts(each)
    elif _is_module(value):
        yield from value.modules()
        yield from value.parameters()
    elif _is_optimizer(value):
        for group in value.param_groups:
            yield from group["params"]


def write(values: Mapping[str, Any], directory: Path) -> None:
    """Write the part of this rank, and wait for the others.

    Raises:
        Exception: whatever PyTorch, which must be 2.2 or later, or the disk refuse, of any rank.
    """
    from torch.distributed.checkpoint.state_dict_saver import save  # noqa: PLC0415 there only where a training has it

    save(_state_dicts(values), checkpoint_id=str(directory))


def read(directory: Path, into: object) -> dict[str, Any]:
    """Load the part of this rank into a state, and return what was saved by name.

    Raises:
        TypeError: there is no state that says which part.
        Exception: whatever PyTorch refuses.
    """
    from torch.distributed.checkpoint.state_dict import (  # noqa: PLC0415 as above
        set_model_state_dict,
        set_optimizer_state_dict,
    )
    from torch.distributed.checkpoint.state_dict_loader import load  # noqa: PLC0415 as above

    if into is None:
        raise TypeError(f"{directory} is sharded: load(state) puts it into a state such as the one that was saved")
    targets = values_of(into)
    loaded = _state_dicts(targets)
    load(loaded, checkpoint_id=str(directory))
    for name, target in targets.items():
        if _is_module(target):
            set_model_state_dict(target, loaded[name])
        elif _is_optimizer(target):
            set_optimizer_state_dict(_model_of(target, targets), target, loaded[name])
        elif hasattr(target, "load_state_dict") and not isinstance(target, RandomState):
            target.load_state_dict(loaded[name])
    return loaded


def _state_dicts(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is saved, with the names of parameters in place of their numbers in optimizers."""
    from torch.distributed.checkpoint.state_dict import (  # noqa: PLC0415 as above
        get_model_state_dict,
        get_optimizer_state_dict,
    )

    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, RandomState):
            continue
        if _is_module(value):
            found[name] = get_model_state_dict(value)
        elif _is_optimizer(value):
            found[name] = get_optimizer_state_dict(_model_of(value, values), value)
        else:
            found[name] = value.state_dict() if callable(getattr(value, "state_dict", None)) else value
    return found


def _model_of(optimizer: Any, values: Mapping[str, Any]) -> Any:
    """The module whose parameters an optimizer changes.

    Raises:
        KeyError: it is not part of the state.
    """
    changed = {id(each) for group in optimizer.param_groups for each in group["params"]}
    for value in values.values():
        if _is_module(value) and any(id(each) in changed for each in value.parameters()):
            return value
    raise KeyError("the module of the optimizer must be saved with it: the names of its parameters are needed")


def _is_module(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _is_optimizer(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)
