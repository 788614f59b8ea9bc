"""Named formats: what names, labels and the like have to look like."""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, ClassVar, Final

from trainer.kube.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    service_label_problems,
    subdomain_problems,
)
from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.library.times import parse_time
from trainer_devcluster.apiserver.cel.library.urls import Url
from trainer_devcluster.apiserver.cel.values import NONE, Optional, some

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer_devcluster.apiserver.cel.signatures import Function

_BYTE: Final = re.compile(r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")


@dataclass(frozen=True, slots=True)
class Format:
    """A named format."""

    CEL_TYPE: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    problems: Callable[[str], list[str]]

    def validate(self, text: str) -> Optional:
        """What is wrong with a text; none when nothing is."""
        found = self.problems(text)
        return some(found) if found else NONE


def _parses(parse: Callable[[str], object], problem: str) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        try:
            parse(text)
        except (ValueError, EvaluationError, binascii.Error):
            return [problem]
        return []

    return problems


def _with_prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Names that something is put behind may end with a hyphen."""
    return lambda text: problems(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


def _decoded(text: str) -> bytes:
    if _BYTE.match(text) is None:
        raise ValueError(text)
    return base64.b64decode(text, validate=True)


_FORMATS: Final = {
    known.name: known
    for known in (
        Format("dns1123Label", label_problems),
        Format("dns1123Subdomain", subdomain_problems),
        Format("dns1035Label", service_label_problems),
        Format("qualifiedName", qualified_name_problems),
        Format("labelValue", label_value_problems),
        Format("dns1123LabelPrefix", _with_prefix(label_problems)),
        Format("dns1123SubdomainPrefix", _with_prefix(subdomain_problems)),
        Format("dns1035LabelPrefix", _with_prefix(service_label_problems)),
        Format("uri", _parses(Url.parse, "invalid URI")),
        Format("uuid", _parses(uuid.UUID, "does not match the UUID format")),
        Format("byte", _parses(_decoded, "invalid base64")),
        Format("date", _parses(date.fromisoformat, "invalid date")),
        Format("datetime", _parses(parse_time, "invalid datetime")),
    )
}


def _constant(value: Format) -> Callable[[], Format]:
    return lambda: value


SIGNATURES: Final[list[tuple[str, Function]]] = [
    (
        "::format.named(string) -> optional<kubernetes.NamedFormat>",
        lambda name: some(_FORMATS[name]) if name in _FORMATS else NONE,
    ),
    *((f"::format.{name}() -> kubernetes.NamedFormat", _constant(known)) for name, known in _FORMATS.items()),
    ("kubernetes.NamedFormat.validate(string) -> optional<list<string>>", Format.validate),
]
