"""Names: what objects may be called, and how the server makes names up.

Rules: Kubernetes documentation, "Object Names and IDs".
"""

from __future__ import annotations

import re
import secrets
from enum import StrEnum
from typing import Final

from trainer.kube.names import matching, subdomain_problems

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL.pattern}')"
)
_SERVICE_LABEL_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_SERVICE_LABEL.pattern}')"
)
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_GENERATED_PREFIX_LENGTH: Final = 63 - _SUFFIX_LENGTH


class NameRule(StrEnum):
    """What `metadata.name` may look like (Kubernetes documentation, "Object Names and IDs")."""

    SUBDOMAIN = "subdomain"
    """RFC 1123 subdomain, at most 253 characters."""
    LABEL = "label"
    """RFC 1123 label, at most 63 characters."""
    SERVICE_LABEL = "service-label"
    """RFC 1035 label, at most 63 characters: does not start with a digit."""
    PATH_SEGMENT = "path-segment"
    """Anything that fits into one URL path segment."""


def generate_name(prefix: str) -> str:
    """A name from `metadata.generateName`: the prefix, cut to fit a label, and five random characters."""
    suffix = "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH))
    return prefix[:_GENERATED_PREFIX_LENGTH] + suffix


def name_problems(name: str, rule: NameRule) -> list[str]:
    """What is wrong with an object's name; empty when nothing is."""
    if rule is NameRule.LABEL:
        return label_problems(name)
    if rule is NameRule.SERVICE_LABEL:
        return service_label_problems(name)
    if rule is NameRule.PATH_SEGMENT:
        return _path_segment_problems(name)
    return subdomain_problems(name)


def _path_segment_problems(name: str) -> list[str]:
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def label_problems(text: str) -> list[str]:
    """What keeps a text from being an RFC 1123 label; empty when nothing does."""
    return matching(text, _LABEL, 63, _LABEL_TEXT)


def service_label_problems(text: str) -> list[str]:
    """What keeps a text from being an RFC 1035 label; empty when nothing does."""
    return matching(text, _SERVICE_LABEL, 63, _SERVICE_LABEL_TEXT)
