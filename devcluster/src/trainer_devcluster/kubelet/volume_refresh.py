"""Finds the pods whose files are out of date, because what these come from has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.controller.controller import Controller
from trainer.kube.objects import annotations_of, key_of, labels_of, name_of, namespace_of
from trainer.kube.resource import CONFIG_MAPS, PODS, SECRETS
from trainer_devcluster.kubelet.volumes import kind_and_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import ObjectKey

_FIELDS = {"configMap": ("name",), "secret": ("secretName", "name")}
"""Where a volume or projected source has the name of the object that it is made from."""


class VolumeRefresh:
    """Follows ConfigMaps, Secrets and the pods' own metadata; constructing it registers it with the manager.

    Args:
        manager: what it runs in.
        refresh: called with the key of a pod whose files have to be compared with what they come from.
    """

    def __init__(self, manager: Manager, refresh: Callable[[ObjectKey], None]) -> None:
        self._refresh = refresh
        self._pods = manager.informer(PODS).lister
        controller = Controller("volumes", manager, self.reconcile).reconciles(PODS, predicate=_has_new_metadata)
        controller.watches(CONFIG_MAPS, lambda obj: self._users("configMap", obj))
        controller.watches(SECRETS, lambda obj: self._users("secret", obj))

    async def reconcile(self, key: ObjectKey) -> None:
        """Have the files of a pod compared with what they come from."""
        self._refresh(key)

    def _users(self, kind: str, obj: CachedObject) -> list[ObjectKey]:
        name = name_of(obj)
        return [key_of(pod) for pod in self._pods.list(namespace_of(obj)) if name in _names(kind, pod)]


def _names(kind: str, pod: Mapping[str, Any]) -> Iterator[str]:
    """Names of the objects of a kind that the pod's volumes are made from."""
    for volume in pod["spec"].get("volumes") or []:
        own, source = kind_and_source(volume)
        sources = source.get("sources") or [] if own == "projected" else [volume]
        for entry in sources:
            for field in _FIELDS[kind]:
                if name := (entry.get(kind) or {}).get(field):
                    yield name


def _has_new_metadata(old: CachedObject | None, new: CachedObject | None) -> bool:
    if old is None or new is None:
        return False
    return labels_of(old) != labels_of(new) or annotations_of(old) != annotations_of(new)
