"""Keys of labels, annotations and node selectors, and names of resources: a name with an optional DNS prefix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trainer.kube.field_errors import FieldError, invalid, too_long

ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of the Jobs of a replicated Job, in the template of a runtime: the step of a training that they are, one of
`trainer`, `dataset-initializer` and `model-initializer`."""
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
"""Annotation of the JobSet, of the runtime or the TrainJob: the Volcano queue that the PodGroup waits in."""

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)

_ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all keys and values together (Kubernetes, `TotalAnnotationSizeLimitB`)."""


def is_qualified_name(key: str) -> bool:
    """Whether Kubernetes accepts a text as key: up to 63 characters, perhaps after a DNS subdomain and a slash."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def check_keys(mapping: dict[str, Any] | None, path: str) -> Iterator[FieldError]:
    """Refuse keys that labels and node selectors may not have; schemas judge only their values."""
    for key in mapping or {}:
        if not is_qualified_name(key):
            yield _wrong_key(key, path)


def check_annotation_keys(annotations: dict[str, str] | None, path: str) -> Iterator[FieldError]:
    """Refuse keys that annotations may not have; Kubernetes takes capitals before the slash for small letters."""
    for key in annotations or {}:
        if not is_qualified_name(key.lower()):
            yield _wrong_key(key, path)


def check_annotations(annotations: dict[str, str] | None, path: str) -> Iterator[FieldError]:
    """Refuse keys that annotations may not have, and more of them than Kubernetes stores with one object."""
    yield from check_annotation_keys(annotations, path)
    if sum(len(key.encode()) + len(value.encode()) for key, value in (annotations or {}).items()) > _ANNOTATIONS_LIMIT:
        yield too_long(path, _ANNOTATIONS_LIMIT)


def check_metadata(metadata: dict[str, Any] | None, path: str) -> Iterator[FieldError]:
    """Refuse labels and annotations that Kubernetes would not store."""
    yield from check_keys((metadata or {}).get("labels"), f"{path}.labels")
    yield from check_annotations((metadata or {}).get("annotations"), f"{path}.annotations")


def _wrong_key(key: str, path: str) -> FieldError:
    return invalid(path, key, "keys must be names of letters, digits, -, _ and ., such as team or example.com/team")
