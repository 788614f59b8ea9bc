"""References to container images, as container runtimes read them (distribution/reference, `ParseNormalizedNamed`).

Kubernetes accepts any text as image; what is no reference ends as `InvalidImageName` once a pod is on a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trainer.kube.field_errors import OMITTED, FieldError, invalid, show

_LONGEST_NAME: Final = 255
_LONGEST: Final = 1024
"""Characters of a reference; name, tag and digest of what exists need half as many."""

_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?",
    re.ASCII,
)
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}", re.ASCII)


def check_image(image: str | None, path: str) -> Iterator[FieldError]:
    """Refuse what no container runtime reads as a reference; an image that is left out comes from elsewhere."""
    problem = _problem(image) if image else None
    if problem is not None:
        shown = image if len(image or "") <= _LONGEST else OMITTED
        yield invalid(
            path, shown, f"must be an image such as python, team/image:tag or host:5000/team/image: {problem}"
        )


def _problem(image: str) -> str | None:
    """Which part is wrong, in one pass over the text."""
    if len(image) > _LONGEST:
        return f"it has more than {_LONGEST} characters"
    rest, at, digest = image.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return f"{show(digest)} is no digest such as sha256:..."
    slash = rest.rfind("/") + 1
    last, colon, tag = rest[slash:].partition(":")
    if colon and not _TAG.fullmatch(tag):
        return f"{show(tag)} is no tag: letters, digits, _, . and -, at most 128 of them"
    name = rest[:slash] + last
    if len(name) > _LONGEST_NAME:
        return f"its name has more than {_LONGEST_NAME} characters"
    host, *parts = name.split("/")
    if parts and _is_host(host):
        if not _HOST.fullmatch(host):
            return f"{show(host)} is no host name"
    else:
        parts = [host, *parts]
    wrong = next((part for part in parts if not _PART.fullmatch(part)), None)
    if wrong is not None:
        return f"{show(wrong)} is not lower-case letters and digits, with single ., _, __ or any - between them"
    return None


def _is_host(part: str) -> bool:
    """Whether the text before the first slash names a registry, and not a part of the path in the default registry."""
    return "." in part or ":" in part or part == "localhost" or part != part.lower()
