"""The state of a training as a file of a checkpoint: what has a `state_dict` by that, and all else as it is.

With PyTorch it is the file of `torch.save`, which loads without running code; without PyTorch it is a pickle.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TORCH, _PICKLE = "state.pt", "state.pickle"
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


def write(state: object, directory: Path, name: str = "") -> None:
    """Write the file.

    Raises:
        Exception: whatever PyTorch, pickle or the disk refuse.
    """
    values = {name: _saved(value) for name, value in values_of(state).items()}
    torch = sys.modules.get("torch")
    with (directory / (name or (_PICKLE if torch is None else _TORCH))).open("wb") as file:
        if torch is None:
            pickle.dump(values, file, protocol=4)
        else:
            torch.save(values, file)


def read(directory: Path, map_location: Any, weights_only: bool, name: str = "") -> dict[str, Any]:
    """What is in the file, by name.

    Raises:
        FileNotFoundError: the checkpoint is another program's.
        Exception: whatever PyTorch or pickle refuse.
    """
    pickled = directory / _PICKLE
    if not name and pickled.exists():
        with pickled.open("rb") as file:
            return dict(pickle.load(file))  # noqa: S301 as trusted as the script, which the training may write as well
    import torch  # noqa: PLC0415 there only where a training has it

    return dict(torch.load(directory / (name or _TORCH), map_location=map_location, weights_only=weights_only))


def put(values: Mapping[str, Any], state: object) -> None:
    """Put what was read into those of the same names that take it.

    Raises:
        KeyError: something that takes a state has none in the checkpoint.
    """
    for name, target in values_of(state).items():
        load = getattr(target, "load_state_dict", None)
        if not callable(load):
            continue
        if name not in values:
            raise KeyError(f"the checkpoint has no {name!r}, only {', '.join(sorted(values))}")
        load(values[name])


def _saved(value: Any) -> Any:
    state_dict = getattr(value, "state_dict", None)
    return state_dict() if callable(state_dict) else value


class RandomState:
    """The random numbers of this process: of Python, NumPy, PyTorch and its devices, where the training has them."""

    def state_dict(self) -> dict[str, Any]:
        """The state of each generator, of types that `torch.load` takes."""
        version, words, gauss = random.getstate()
        found: dict[str, Any] = {"python": [version, list(words), gauss]}
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None:
            kind, keys, position, has_gauss, cached = numpy.random.get_state()
            found["numpy"] = [str(kind), keys.tolist(), int(position), int(has_gauss), float(cached)]
        if torch is not None:
            found["torch"] = torch.get_rng_state()
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                found["cuda"] = torch.cuda.get_rng_state_all()
        return found

    def load_state_dict(self, found: Mapping[str, Any]) -> None:
        """Go on where the state was taken; generators that are not there are left out."""
        version, words, gauss = found["python"]
        random.setstate((version, tuple(words), gauss))
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and "numpy" in found:
            kind, keys, *rest = found["numpy"]
            numpy.random.set_state((kind, numpy.array(keys, dtype="uint32"), *rest))
        if torch is not None and "torch" in found:
            torch.set_rng_state(found["torch"].cpu())
            if "cuda" in found and torch.cuda.is_available() and len(found["cuda"]) == torch.cuda.device_count():
                torch.cuda.set_rng_state_all([each.cpu() for each in found["cuda"]])
