from __future__ import annotations

from trainer.devcluster.apiserver.kinds import BUILTIN_KINDS


def test_kinds_are_served_once() -> None:
    """No two definitions share a URL or a short name."""
    paths = [definition.resource.path() for definition in BUILTIN_KINDS]
    names = [name for definition in BUILTIN_KINDS for name in (definition.singular, *definition.short_names)]
    assert len(set(paths)) == len(paths)
    assert len(set(names)) == len(names)
