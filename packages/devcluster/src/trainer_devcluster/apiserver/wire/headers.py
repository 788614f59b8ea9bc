"""Headers: in which shape an answer is wanted, in which format a body came, and the warnings beside an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

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
    """The shape of an answer."""

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


MAX_CHARACTERS: Final = 4096
"""All warnings of an answer together; beyond it each is cut."""
CUT_CHARACTERS: Final = 256
"""What is left of a warning when all of them are too long."""


class Warnings:
    """The warnings of one request, each once, in the order in which they came up."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, *texts: str) -> None:
        """Note warnings; an empty text and one that is known already count for nothing."""
        self._texts.update(dict.fromkeys(filter(None, texts)))

    @property
    def texts(self) -> list[str]:
        """What goes into the answer, cut as the real server cuts it."""
        texts = list(self._texts)
        if sum(map(len, texts)) <= MAX_CHARACTERS:
            return texts
        kept: list[str] = []
        room = MAX_CHARACTERS
        for text in texts:
            if room <= 0:
                break
            kept.append(text[:CUT_CHARACTERS])
            room -= len(kept[-1])
        return kept


def header_text(value: str) -> str:
    """The value of a header; its bytes that are no UTF-8, which come as lone surrogates, are U+FFFD as in Go's JSON."""
    return value.encode(errors="surrogateescape").decode(errors="replace")
