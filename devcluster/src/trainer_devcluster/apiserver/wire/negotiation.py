"""Content negotiation: in which shape an answer is wanted, and in which format a body came."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from trainer_devcluster.apiserver.wire import answers

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
META_GROUP = "meta.k8s.io"
DISCOVERY_GROUP = "apidiscovery.k8s.io"
TABLE_VERSIONS = ("v1", "v1beta1")

_ANYTHING = frozenset({"*/*", "application/*", JSON})
_METADATA_KINDS = frozenset({"PartialObjectMetadata", "PartialObjectMetadataList"})


class Shape(Enum):
    """What an answer consists of."""

    OBJECT = auto()
    TABLE = auto()
    METADATA = auto()
    """PartialObjectMetadata: apiVersion, kind and metadata of each object."""


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The shape of an answer; always written as JSON."""

    shape: Shape = Shape.OBJECT
    version: str = "v1"
    """Version of meta.k8s.io for tables and metadata."""


@dataclass(frozen=True, slots=True)
class MediaType:
    """One alternative of an Accept header."""

    name: str
    parameters: dict[str, str]
    quality: float = 1.0


def media_types(accept: str) -> list[MediaType]:
    """The alternatives of an Accept header, most wanted first."""
    alternatives = []
    for text in accept.split(","):
        name, *pairs = (part.strip() for part in text.split(";"))
        parameters = {key.strip(): value.strip() for key, _, value in (pair.partition("=") for pair in pairs)}
        if name:
            alternatives.append(MediaType(name.lower(), parameters, _quality(parameters.get("q", "1"))))
    return sorted(alternatives, key=lambda alternative: -alternative.quality)


def answer_format(accept: str) -> AnswerFormat:
    """The first alternative that we can write; without an Accept header, plain JSON.

    Raises:
        ApiError: 406, there is none.
    """
    alternatives = media_types(accept) or [MediaType("*/*", {})]
    for alternative in alternatives:
        if alternative.name not in _ANYTHING:
            continue
        kind = alternative.parameters.get("as", "")
        if not kind:
            return AnswerFormat()
        version = alternative.parameters.get("v", "")
        if alternative.parameters.get("g") != META_GROUP or version not in TABLE_VERSIONS:
            continue
        if kind == "Table":
            return AnswerFormat(Shape.TABLE, version)
        if kind in _METADATA_KINDS:
            return AnswerFormat(Shape.METADATA, version)
    raise answers.not_acceptable([JSON])


def wants_aggregated_discovery(accept: str) -> bool:
    """Whether the aggregated discovery document is wanted before the plain one.

    Raises:
        ApiError: 406, neither of them is acceptable.
    """
    for alternative in media_types(accept) or [MediaType("*/*", {})]:
        if alternative.name not in _ANYTHING:
            continue
        kind = alternative.parameters.get("as", "")
        if not kind:
            return False
        parameters = alternative.parameters
        if kind == "APIGroupDiscoveryList" and parameters.get("g") == DISCOVERY_GROUP and parameters.get("v") == "v2":
            return True
    raise answers.not_acceptable([JSON])


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
