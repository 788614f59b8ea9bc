from __future__ import annotations

from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS
from trainer_devcluster.apiserver.storage.storage import Partition


def test_kinds_are_served_once() -> None:
    """No two definitions share a URL; only versions of the same objects share names."""
    paths = [definition.resource.path() for definition in BUILTIN_KINDS]
    assert len(set(paths)) == len(paths)
    stored = {Partition.of(definition.resource): definition for definition in BUILTIN_KINDS}
    names = [name for definition in stored.values() for name in (definition.singular, *definition.short_names)]
    assert len(set(names)) == len(names)
