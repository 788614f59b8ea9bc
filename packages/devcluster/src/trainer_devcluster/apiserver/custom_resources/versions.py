"""Versions of a custom resource definition: from the object that a user applies to resources that can be served."""

from __future__ import annotations

from collections.abc import Mapping

from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import Column, ResourceDefinition, ScalePaths
from trainer_devcluster.apiserver.definitions.strategy import SchemaStrategy, Strategy, WebhookStrategy
from trainer_devcluster.apiserver.definitions.versions import Versions
from trainer_devcluster.apiserver.discovery.discovery import preference
from trainer_devcluster.apiserver.schema.structural import StructuralSchema
from trainer_devcluster.apiserver.tables.table import DEFAULT_COLUMN


def definitions_of(
    crd: Object,
    webhooks: Mapping[tuple[str, str], Strategy],
    since: int,
) -> list[ResourceDefinition]:
    """All versions of a definition, served or not.

    Args:
        crd: an apiextensions.k8s.io/v1 CustomResourceDefinition that is valid.
        webhooks: strategies, by group and kind, that stand in for admission webhooks.
        since: revision of the storage at which the definition takes effect.

    Raises:
        ValueError: a schema cannot be served.
    """
    spec = crd["spec"]
    schemas = {_api_version(spec, version): _schema(version) for version in spec["versions"]}
    storage = next(_api_version(spec, version) for version in spec["versions"] if version.get("storage"))
    versions = Versions(storage, schemas, since)
    accepted = (crd.get("status") or {}).get("acceptedNames") or {}
    names = accepted if accepted.get("plural") else spec["names"]
    webhook = webhooks.get((spec["group"], names["kind"]))
    spec = {**spec, "names": names}
    return [
        _definition(spec, version, schemas[_api_version(spec, version)], versions, webhook)
        for version in spec["versions"]
    ]


def _api_version(spec: Object, version: Object) -> str:
    return f"{spec['group']}/{version['name']}"


def _schema(version: Object) -> StructuralSchema:
    return StructuralSchema.from_crd((version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"})


def _definition(
    spec: Object, version: Object, schema: StructuralSchema, versions: Versions, webhook: Strategy | None
) -> ResourceDefinition:
    names, group = spec["names"], spec["group"]
    subresources = version.get("subresources") or {}
    return ResourceDefinition(
        resource=Resource(group, version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced"),
        strategy=SchemaStrategy(schema) if webhook is None else WebhookStrategy(schema, webhook),
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status_subresource=subresources.get("status") is not None,
        scale=_scale(subresources.get("scale")),
        columns=tuple(_column(entry) for entry in version.get("additionalPrinterColumns") or ()) or (DEFAULT_COLUMN,),
        schema=schema,
        selectable_fields=tuple(entry["jsonPath"].lstrip(".") for entry in version.get("selectableFields") or ()),
        list_kind=names.get("listKind") or "",
        versions=versions,
        deprecation=_deprecation(spec, names["kind"], version),
    )


def _deprecation(spec: Object, kind: str, version: Object) -> str:
    """The warning for clients of a deprecated version; the newest version that is not deprecated is recommended."""
    if not version.get("deprecated"):
        return ""
    warning = version.get("deprecationWarning")
    if warning is not None:
        return str(warning)
    group, others = spec["group"], [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    text = f"{group}/{version['name']} {kind} is deprecated"
    return f"{text}; use {group}/{min(others, key=preference)} {kind}" if others else text


def _scale(entry: Object | None) -> ScalePaths | None:
    if entry is None:
        return None
    return ScalePaths(entry["specReplicasPath"], entry["statusReplicasPath"], entry.get("labelSelectorPath") or "")


def _column(entry: Object) -> Column:
    return Column(
        entry["name"],
        entry["type"],
        entry["jsonPath"],
        entry.get("format") or "",
        entry.get("description") or "",
        int(entry.get("priority") or 0),
    )
