"""Merges lists of Kubernetes API entries by a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from trainer.kube.objects import Object

    Key = Callable[[Object], Hashable]


def upsert(items: list[Object], additions: Iterable[Object], key: Key) -> None:
    """Replace the entry of `items` with the same key, in its place, or append."""
    positions = {key(item): position for position, item in enumerate(items)}
    for addition in additions:
        position = positions.setdefault(key(addition), len(items))
        items[position : position + 1] = [addition]


def by_name(item: Object) -> Hashable:
    """Key of environment variables and volumes."""
    return item.get("name")


def by_mount_path(item: Object) -> Hashable:
    """Key of volume mounts."""
    return item.get("mountPath")


def by_port(item: Object) -> Hashable:
    """Key of container ports; TCP is the protocol when none is named."""
    return item.get("containerPort"), item.get("protocol") or "TCP"


def by_source(item: Object) -> Hashable:
    """Key of sources of environment variables: which ConfigMap or Secret, and the prefix."""
    config_map, secret = item.get("configMapRef") or {}, item.get("secretRef") or {}
    return config_map.get("name"), secret.get("name"), item.get("prefix") or ""


def by_taint(item: Object) -> Hashable:
    """Key of tolerations: which taint they tolerate."""
    return item.get("key") or "", item.get("effect") or ""
