"""The front door."""

from __future__ import annotations

import types

from trainer import kube


def test_front_door_lists_what_it_exports() -> None:
    """`__all__` names exactly the public names of the package; its modules are reached by their own names."""
    public = {
        name
        for name, value in vars(kube).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
    }
    assert public == set(kube.__all__)
