"""The type of every object in a fake: any fields, and some lists that merge item by item."""

from __future__ import annotations

from typing import Final

from trainer.kube.api_semantics.value_types import Typing

LISTS: Final = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "finalizers": "",
    "initContainers": "name",
    "ownerReferences": "uid",
    "replicatedJobs": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists that merge item by item: the key of the items by the name of the list; "" for sets."""


class _AnyKind(Typing):
    """The type of every object: any fields, and the lists of `LISTS`."""

    def declares(self, name: str) -> bool:  # noqa: ARG002
        """All fields count as named ones."""
        return True

    def field(self, name: str) -> Typing:
        """A known list, or anything."""
        return _KNOWN_LISTS.get(name, ANY_KIND)

    @property
    def item(self) -> Typing:
        """Anything."""
        return ANY_KIND


ANY_KIND: Final = _AnyKind({})
"""For all objects of a fake, which knows no schemas."""
_KNOWN_LISTS = {
    name: _AnyKind({"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key or None})
    for name, key in LISTS.items()
}
