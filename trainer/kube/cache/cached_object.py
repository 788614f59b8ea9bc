"""How a cache keeps an object: JSON bytes, with the metadata that the machinery asks for decoded beside them.

A pod of 8 KB takes about 6 KiB this way and 20 to 100 KiB as dictionaries or model classes, and the garbage collector
has next to nothing to walk through. What is not metadata is decoded when somebody reads it.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any

import msgspec

from trainer.kube.client import RawJson
from trainer.kube.json_text import decode_outer
from trainer.kube.objects import Object, ObjectKey


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The metadata that informers, indexes, predicates and queues ask for."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _AnnotatedMeta(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None


class _Annotated(msgspec.Struct, gc=False):
    metadata: _AnnotatedMeta | None = None


_annotated = msgspec.json.Decoder(_Annotated)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_metadata = msgspec.json.Decoder(ObjectMeta)
_object = msgspec.json.Decoder(dict[str, Any])
_value = msgspec.json.Decoder(Any)
_name = msgspec.json.Decoder(str | None)
_encoder = msgspec.json.Encoder()


_buffer = bytearray()
_LARGEST_BUFFER = 1 << 20


def _exactly(value: Mapping[str, Any]) -> bytes:
    """JSON in no more memory than it needs; what `encode` returns keeps its half-empty buffer while it lives."""
    _encoder.encode_into(value, _buffer)
    encoded = bytes(_buffer)
    if len(_buffer) > _LARGEST_BUFFER:
        _buffer.clear()
    return encoded


class _StructMapping(msgspec.StructMeta, ABCMeta):
    """Metaclass of a struct that is a mapping."""


class CachedObject(  # noqa: PLW1641 - as mappings are, it is not hashable
    msgspec.Struct, Mapping[str, Any], metaclass=_StructMapping, frozen=True, gc=False, eq=False
):
    """A read-only object of a cache, shared by all who read it.

    It answers as the decoded object would (`obj["spec"]`, `obj.get("status")`), decoding that field anew each time, so
    that what a caller does to the answer reaches nobody else. `decode` gives the whole object.
    """

    raw: bytes
    """The object as JSON, with `apiVersion` and `kind`."""
    meta: ObjectMeta
    key: ObjectKey
    """Namespace and name."""

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> CachedObject:
        """Keep a decoded object.

        Raises:
            ValueError: metadata has a field of a type that Kubernetes does not allow.
        """
        raw = obj.raw if isinstance(obj, CachedObject) else _exactly(obj)
        return cls._keep(raw, _metadata.decode(_fields.decode(raw).get("metadata", b"{}")))

    @classmethod
    def _keep(cls, raw: bytes, meta: ObjectMeta) -> CachedObject:
        shared = _share(meta)
        return cls(raw, shared, ObjectKey(shared.namespace or "", shared.name))

    @classmethod
    def compact(cls, raw: RawJson, api_version: str, kind: str, *, metadata_only: bool = False) -> CachedObject:
        """Keep an encoded object without `metadata.managedFields`, half of a typical object and of no use to us.

        Args:
            raw: JSON of one object; what is kept is a copy, so that it does not keep a whole page of a list alive.
            api_version: for objects that lack it, as items of built-in lists do.
            kind: likewise, and for objects of which the server sends the metadata alone.
            metadata_only: drop the rest.

        Raises:
            ValueError: this is not the JSON of an object of this kind with metadata.
        """
        fields = decode_outer(_fields, raw)
        if "metadata" not in fields:
            raise ValueError("the object has no metadata")
        metadata = decode_outer(_fields, fields["metadata"])
        metadata.pop("managedFields", None)
        encoded = _encoder.encode(metadata)
        actual = _name.decode(fields.pop("kind", b"null"))
        if actual not in {None, kind, "PartialObjectMetadata"}:
            raise ValueError(f"the object is of kind {actual} instead of {kind}")
        if actual != kind or metadata_only:
            fields.pop("apiVersion", None)
        types = {} if "apiVersion" in fields else {"apiVersion": msgspec.Raw(_encoder.encode(api_version))}
        rest = {} if metadata_only else fields
        kept = types | {"kind": msgspec.Raw(_encoder.encode(kind))} | rest | {"metadata": msgspec.Raw(encoded)}
        return cls._keep(_exactly(kept), _metadata.decode(encoded))

    @classmethod
    def of_answer(cls, obj: Object, api_version: str, kind: str, *, metadata_only: bool = False) -> CachedObject:
        """Keep a decoded object as `compact` keeps an encoded one, which is left as it is.

        Raises:
            ValueError: it has no metadata, or a field of that is of a type that Kubernetes does not allow.
        """
        if not obj.get("metadata"):
            raise ValueError("the object has no metadata")
        metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        types = {"apiVersion": api_version, "kind": kind}
        kept = types | ({} if metadata_only else obj) | {"metadata": metadata}
        return cls._keep(_exactly(kept), msgspec.convert(metadata, ObjectMeta))

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.meta.uid

    @property
    def resource_version(self) -> str:
        """`metadata.resourceVersion`."""
        return self.meta.resource_version

    @property
    def generation(self) -> int:
        """`metadata.generation`; 0 for kinds that have none."""
        return self.meta.generation

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`; shared by all readers."""
        return self.meta.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """`metadata.annotations`; decoded for each reader, as little else of the object as possible."""
        metadata = _annotated.decode(self.raw).metadata
        return (metadata and metadata.annotations) or {}

    @property
    def owner_references(self) -> tuple[OwnerReference, ...]:
        """`metadata.ownerReferences`."""
        return self.meta.owner_references or ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference with `controller: true`, of which the API server allows one."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def decode(self) -> Object:
        """The whole object; a fresh copy that belongs to the caller."""
        return _object.decode(self.raw)

    def __eq__(self, other: object) -> bool:
        return Mapping.__eq__(self, other)

    def __getitem__(self, name: str) -> Any:
        return _value.decode(_fields.decode(self.raw)[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_fields.decode(self.raw))

    def __len__(self) -> int:
        return len(_fields.decode(self.raw))

    def __repr__(self) -> str:
        return f"CachedObject({self.key}, resource_version={self.resource_version!r})"


def _share(meta: ObjectMeta) -> ObjectMeta:
    """A copy of the metadata that shares the strings which thousands of objects have in common."""
    labels, owners = meta.labels, meta.owner_references
    return ObjectMeta(
        meta.name,
        meta.namespace and intern(meta.namespace),
        meta.uid,
        meta.resource_version,
        meta.generation,
        meta.deletion_timestamp,
        labels and {intern(name): intern(value) for name, value in labels.items()},
        owners and tuple(map(_share_owner, owners)),
    )


def _share_owner(owner: OwnerReference) -> OwnerReference:
    return OwnerReference(
        intern(owner.api_version), intern(owner.kind), intern(owner.name), intern(owner.uid), owner.controller
    )
