"""The definitions of our kinds, generated once for all tests of a process; tests must not change them."""

from __future__ import annotations

from trainer.api.crds import crds
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.schema.structural import StructuralSchema

DEFINITIONS = crds()


def root_schema(name: str) -> Object:
    """The OpenAPI schema of the definition with this kind or plural."""
    (found,) = [crd for crd in DEFINITIONS if name in {crd["spec"]["names"]["kind"], crd["spec"]["names"]["plural"]}]
    schema: Object = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def schema_of(definition: Object) -> StructuralSchema:
    """What an API server makes of the only version of a definition, with its rules compiled."""
    (version,) = definition["spec"]["versions"]
    return StructuralSchema.from_crd(version["schema"]["openAPIV3Schema"])
