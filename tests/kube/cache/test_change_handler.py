"""A handler that is made of functions."""

from __future__ import annotations

from collections.abc import Callable

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.change_handler import ChangeHandler


def test_calls() -> None:
    """Changes and deletions are passed on, a resync is no change, and initial objects may have their own function."""
    old, new = (CachedObject.of({"metadata": {"name": name}}) for name in ("old", "new"))
    calls: list[tuple[str, str]] = []

    def noting(what: str) -> Callable[[CachedObject], None]:
        return lambda obj: calls.append((what, obj.key.name))

    handler = ChangeHandler(noting("changed"), noting("deleted"))
    handler.on_add(old, initial=True)
    handler.on_update(old, new)
    handler.on_update(new, new)
    handler.on_delete(new, stale=False)
    assert calls == [("changed", "old"), ("changed", "new"), ("deleted", "new")]

    calls.clear()
    handler = ChangeHandler(noting("changed"), noting("deleted"), noting("initial"))
    handler.on_add(old, initial=True)
    handler.on_add(new, initial=False)
    assert calls == [("initial", "old"), ("changed", "new")]
