"""The state of a training as a file of a checkpoint: what has a `state_dict` by that, and all else as it is.

With PyTorch it is the file of `torch.save`, which loads without running code; without PyTorch it is a pickle.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainer.checkpoints.settings import complain

_TORCH, _PICKLE, _OWN = "state.pt", "state.pickle", "random-{}.json"
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
"""Attributes with the module itself, by the class that wraps it: a checkpoint suits the training without, too."""


def plain(value: object) -> object:
    """A module without what wraps it for several processes or for compilation; all else as it is."""
    while type(value).__name__ in _WRAPPERS:
        value = getattr(value, _WRAPPERS[type(value).__name__])
    return value


def values_of(state: object) -> dict[str, Any]:
    """What is saved, by name; a state that is no mapping has the name "state".

    Raises:
        TypeError: a name is no text.
    """
    named = state if isinstance(state, Mapping) else {"state": state}
    for name in named:
        if not isinstance(name, str):
            raise TypeError(f"the names of a state must be texts, not {type(name).__name__}")
    return {name: plain(value) for name, value in named.items()}


def write(values: Mapping[str, Any], directory: Path) -> None:
    """Write what is the same on all ranks.

    Raises:
        Exception: whatever PyTorch, pickle or the disk refuse.
    """
    shared = {name: _saved(value) for name, value in values.items() if not isinstance(value, RandomState)}
    path = directory / (_PICKLE if sys.modules.get("torch") is None else _TORCH)
    _dump(shared, path)
    _say_what_needs_trust(path)


def read(directory: Path, map_location: Any, weights_only: bool) -> dict[str, Any]:
    """What was the same on all ranks, by name.

    Raises:
        FileNotFoundError: the checkpoint is another program's.
        Exception: whatever PyTorch or pickle refuse.
    """
    pickled = directory / _PICKLE
    if pickled.exists():
        with pickled.open("rb") as file:
            return dict(pickle.load(file))  # noqa: S301 written by the script itself, and as trusted
    import torch  # noqa: PLC0415 there only where a training has it

    return dict(torch.load(directory / _TORCH, map_location=map_location, weights_only=weights_only))


def put(values: Mapping[str, Any], into: object) -> None:
    """Put what was read into those of the same names that take it.

    Raises:
        KeyError: something that takes a state has none in the checkpoint.
    """
    for name, target in values_of(into).items():
        load = getattr(target, "load_state_dict", None)
        if not callable(load) or isinstance(target, RandomState):
            continue
        if name not in values:
            raise KeyError(f"the checkpoint has no {name!r}, only {', '.join(sorted(values))}")
        load(values[name])


def has_own(values: Mapping[str, Any]) -> bool:
    """Whether each rank has something of its own."""
    return any(isinstance(value, RandomState) for value in values.values())


def write_own(values: Mapping[str, Any], directory: Path, rank: int) -> None:
    """Write what each rank has of its own.

    Raises:
        OSError: the disk refuses it.
    """
    if has_own(values):
        own = {name: value.state_dict() for name, value in values.items() if isinstance(value, RandomState)}
        (directory / _OWN.format(rank)).write_text(json.dumps(own), encoding="ascii")


def read_own(directory: Path, rank: int, into: object) -> None:
    """Restore what this rank has of its own; a rank that was not there before keeps what it has.

    Raises:
        ValueError: the file is another program's.
    """
    path = directory / _OWN.format(rank)
    targets = {} if into is None else values_of(into)
    if has_own(targets) and path.exists():
        own = json.loads(path.read_text(encoding="ascii"))
        for name, target in targets.items():
            if isinstance(target, RandomState) and name in own:
                target.load_state_dict(own[name])


def _saved(value: Any) -> Any:
    state_dict = getattr(value, "state_dict", None)
    return state_dict() if callable(state_dict) else value


def _dump(values: dict[str, Any], path: Path) -> None:
    torch = sys.modules.get("torch")
    with path.open("wb") as file:
        if torch is None:
            pickle.dump(values, file, protocol=4)
        else:
            torch.save(values, file)


def _say_what_needs_trust(path: Path) -> None:
    """Say at the first checkpoint, and not only after a disruption, that it cannot be loaded as others are."""
    find = getattr(getattr(sys.modules.get("torch"), "serialization", None), "get_unsafe_globals_in_checkpoint", None)
    names: list[str] = []
    with suppress(Exception):  # PyTorch before 2.6, or one that cannot say it
        names = sorted(find(path)) if find is not None else []
    if names:
        what = f"{', '.join(names):.200}"
        complain("trust", f"the state can only be loaded with load(state, weights_only=False): it has {what}")


class RandomState:
    """The random numbers of a process: of Python, NumPy, PyTorch and its devices, where the training has them.

    As a part of a state, it is saved by each rank and restored on the rank of the same number.
    """

    def state_dict(self) -> dict[str, Any]:
        """The state of each generator, as numbers and texts."""
        found: dict[str, Any] = {"python": random.getstate()}
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None:
            kind, keys, *rest = numpy.random.get_state()
            found["numpy"] = [kind, keys.tolist(), *rest]
        if torch is not None:
            found["torch"] = torch.get_rng_state().tolist()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                found["cuda"] = [each.tolist() for each in torch.cuda.get_rng_state_all()]
        return found

    def load_state_dict(self, found: Mapping[str, Any]) -> None:
        """Go on where the state was taken; generators that are not there are left out."""
        version, words, gauss = found["python"]
        random.setstate((version, tuple(words), gauss))
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and "numpy" in found:
            numpy.random.set_state(tuple(found["numpy"]))
        if torch is not None and "torch" in found:
            torch.set_rng_state(torch.tensor(found["torch"], dtype=torch.uint8))
            devices = [torch.tensor(each, dtype=torch.uint8) for each in found.get("cuda", ())]
            if devices and torch.cuda.is_available() and len(devices) == torch.cuda.device_count():
                torch.cuda.set_rng_state_all(devices)
