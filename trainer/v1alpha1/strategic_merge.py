"""Lists with a key, merged as by a strategic merge patch (Kubernetes, "Notes on the strategic merge patch")."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

from trainer.framework.plugin_api.runtime_info import Key
from trainer.kube.merge_patch import merge_patch
from trainer.kube.objects import Object


def strategic_merge(items: list[Object], additions: Iterable[Object], key: Key) -> None:
    """Merge `additions` into the `items` with the same keys, which then stand in the order of the additions.

    New items come as early as that allows: `[A, B]` and `[N]` become `[N, A, B]`, `[A, B]` and `[A, C]` become
    `[A, C, B]`, and `[A, B, C]` and `[C]` keep their order.
    """
    changed = {key(addition): addition for addition in additions}
    if not changed:
        return
    places = {key(item): place for place, item in enumerate(items)}
    own = deque(place for place, item in enumerate(items) if key(item) not in changed)
    merged: list[Object] = []
    for name, addition in changed.items():
        place = places.get(name)
        while own and place is not None and own[0] < place:
            merged.append(items[own.popleft()])
        merged.append(addition if place is None else _merged(items[place], addition))
    items[:] = [*merged, *(items[place] for place in own)]


def _merged(item: Object, addition: Object) -> Object:
    """An item with the changes of another; one that says something else, such as another kind of volume, replaces it.

    A kind is a member that is an object: the source of a volume or of the value of a variable.
    """
    if _kinds(item) != _kinds(addition):
        return addition
    return merge_patch(item, addition)


def _kinds(item: Object) -> set[Hashable]:
    kinds: set[Hashable] = {name for name, value in item.items() if isinstance(value, dict)}
    sources = item.get("valueFrom")
    return kinds | {("valueFrom", name) for name in sources} if isinstance(sources, dict) else kinds
