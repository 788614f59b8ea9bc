"""Namespaces: they end when the namespace controller has emptied them and removed their finalizer."""

from __future__ import annotations

from trainer.kube.objects import Object, name_of
from trainer.kube.resource import NAMESPACES
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import section
from trainer_devcluster.apiserver.objects.names import NameRule

_FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """core/v1 Namespace."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Label it with its name, for namespace selectors."""
        if name_of(obj):
            section(obj["metadata"], "labels")[_NAME_LABEL] = name_of(obj)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it as active, held by the namespace controller."""
        self.default(obj, context)
        obj["spec"] = {"finalizers": [_FINALIZER]}
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Keep the specification, unless the write is that of the namespace controller to `/finalize`."""
        if context.subresource != "finalize":
            obj["spec"] = old.get("spec") or {}


NAMESPACE = ResourceDefinition(
    NAMESPACES,
    NamespaceStrategy(),
    singular="namespace",
    short_names=("ns",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    status_subresource=True,
    subresources=("finalize",),
    generation=False,
    name_rule=NameRule.LABEL,
)
