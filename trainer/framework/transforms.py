"""What of an object is dropped before a cache stores it, because nobody reads it.

People decide how large the objects are that they write, also those that carry the labels by which we watch. What is
stored of an object whose metadata alone is cached is therefore bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainer.framework.deployer import APPLIED_HASH, LIVES_ON
from trainer.kube.objects import annotations_of, labels_of, metadata_of, owner_references_of
from trainer.kube.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

METADATA_LIMIT = 2048
"""Bytes; the metadata of the ConfigMaps that we make is a third of it."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_WHOLE = frozenset({"apiVersion", "kind", "metadata"})
_OUR_DOMAIN = "trainer.kubeflow.org"
_OUR_ANNOTATIONS = (APPLIED_HASH, LIVES_ON)
_MOST_LABELS = 8


def bounded_metadata(obj: Object) -> Object:
    """An object of which only metadata is there, without what makes that large; any other as it is."""
    metadata = metadata_of(obj)
    if obj.keys() - _WHOLE or len(msgspec.json.encode(metadata)) <= METADATA_LIMIT:
        return obj
    labels = sorted(item for item in labels_of(obj).items() if item[0].partition("/")[0] == _OUR_DOMAIN)
    annotations = annotations_of(obj)
    kept = {name: metadata[name] for name in _IDENTITY if name in metadata} | {
        "labels": dict(labels[:_MOST_LABELS]),
        "annotations": {name: annotations[name][:64] for name in _OUR_ANNOTATIONS if name in annotations},
        "ownerReferences": [owner for owner in owner_references_of(obj) if owner.get("controller")],
    }
    return obj | {"metadata": kept}


TRANSFORMS: Mapping[Resource, Callable[[Object], Object]] = {CONFIG_MAPS: bounded_metadata}
"""Of which kinds what is dropped."""
