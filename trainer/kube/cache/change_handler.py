"""A handler of an informer that is made of functions, as ResourceEventHandlerFuncs of client-go is."""

from __future__ import annotations

from collections.abc import Callable

from trainer.kube.cache.cached_object import CachedObject


class ChangeHandler:
    """Calls functions with objects, which must not block; see `Handler`.

    Args:
        on_change: called with each object that is new or has changed.
        on_delete: called with the last known state of each object that is gone.
        on_initial: called in place of `on_change` with those that existed before. Default: `on_change`.
    """

    def __init__(
        self,
        on_change: Callable[[CachedObject], None],
        on_delete: Callable[[CachedObject], None],
        on_initial: Callable[[CachedObject], None] | None = None,
    ) -> None:
        self._on_change = on_change
        self._on_delete = on_delete
        self._on_initial = on_initial or on_change

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """See `Handler`."""
        (self._on_initial if initial else self._on_change)(obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """See `Handler`."""
        if old is not new:  # a resync has no news
            self._on_change(new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._on_delete(obj)
