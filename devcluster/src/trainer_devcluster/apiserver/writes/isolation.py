"""Isolation: what an endpoint may change in a stored object, and whether it has changed anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics.json_values import same

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition

_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})
_WHOLE_OBJECT = frozenset({"binding"})
"""Subresources whose handlers change specification and status together."""
_STATUS_MAY_CHANGE = ("labels", "annotations", "finalizers")


def isolated(definition: ResourceDefinition, new: Object, live: Object, subresource: str) -> Object:
    """The new object with only those changes that the endpoint may make."""
    if subresource in _WHOLE_OBJECT:
        return new
    if subresource == "status":
        kept = dict(live["metadata"])
        if not definition.is_custom:
            for name in _STATUS_MAY_CHANGE:
                kept.pop(name, None)
                if name in new["metadata"]:
                    kept[name] = new["metadata"][name]
        whole = {**live, "metadata": kept}
        whole.pop("status", None)
        return whole | ({"status": new["status"]} if "status" in new else {})
    if definition.status_subresource:
        whole = {name: value for name, value in new.items() if name != "status"}
        return whole | ({"status": live["status"]} if "status" in live else {})
    return new


def differs_in_intent(definition: ResourceDefinition, new: Object, live: Object) -> bool:
    """Whether anything but metadata, and status where that is a matter of its own, is different."""
    ignored = _ENVELOPE | ({"status"} if definition.status_subresource else set())
    names = (new.keys() | live.keys()) - ignored
    return not all(same(new.get(name), live.get(name)) for name in names)


def unchanged(new: Object, live: Object) -> bool:
    """Whether nothing changes but times of field managers."""
    return same(new, live) or same(_without_times(new), _without_times(live))


def _without_times(obj: Object) -> Object:
    managers = [{**entry, "time": ""} for entry in obj["metadata"].get("managedFields") or []]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": managers}}
