"""The definitions of our kinds, generated once for all tests of a process; tests must not change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.crds import crds

if TYPE_CHECKING:
    from trainer.kube.objects import Object

DEFINITIONS = crds()


def root_schema(name: str) -> Object:
    """The OpenAPI schema of the definition with this kind or plural."""
    (found,) = [crd for crd in DEFINITIONS if name in {crd["spec"]["names"]["kind"], crd["spec"]["names"]["plural"]}]
    schema: Object = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema
