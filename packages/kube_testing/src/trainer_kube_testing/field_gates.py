"""Fields behind feature gates that are off, as an API server treats them."""

from __future__ import annotations

from trainer.kube.field_errors import forbidden
from trainer.kube.objects import Object, holders_at
from trainer.kube.resource import Resource
from trainer_kube_testing.api_semantics import statuses


class FieldGates:
    """The fields of a server that a gate keeps out of objects; none until a test closes one."""

    def __init__(self) -> None:
        self._closed: dict[tuple[Resource, str], bool] = {}
        """Whether the field is dropped, by kind and path."""

    def close(self, resource: Resource, field: str, *, drops: bool) -> None:
        """Keep a field out of objects from now on."""
        self._closed[resource, field] = drops

    def open(self, resource: Resource, field: str) -> None:
        """Let it in again."""
        self._closed.pop((resource, field), None)

    def admit(self, resource: Resource, name: str, new: Object, old: Object | None = None) -> None:
        """Drop fields from `new`; those that `old` has stay, as in Kubernetes.

        Raises:
            InvalidError: it has fields that are refused.
        """
        refused = []
        for (gated, field), drops in self._closed.items():
            if gated != resource or (old is not None and any(holders_at(old, field))):
                continue
            for holder, member in list(holders_at(new, field)):
                if drops:
                    del holder[member]
                else:
                    refused.append(forbidden(field, "field is disabled by its feature gate"))
        if refused:
            raise statuses.invalid(resource.kind, resource.group, name, refused)
