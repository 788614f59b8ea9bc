"""The front door."""

from __future__ import annotations

import types

import trainer.kube
from trainer.kube import testing


def test_front_door_lists_what_it_exports() -> None:
    """`__all__` is sorted as ruff wants it and names exactly the public names of the package."""
    for package in (trainer.kube, testing):
        public = {"statuses"} & set(package.__all__) | {
            name
            for name, value in vars(package).items()
            if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
        }
        assert public == set(package.__all__)
