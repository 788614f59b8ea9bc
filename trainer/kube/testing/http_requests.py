"""What the HTTP requests of Kubernetes clients mean (Kubernetes documentation, "API Concepts")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from trainer.kube.api_semantics import statuses
from trainer.kube.client import DeleteOptions, ListOptions, LogOptions, Propagation, WatchOptions
from trainer.kube.objects import Object, metadata_of
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.resource import Resource

_NAMESPACE_SUBRESOURCES = {"status", "finalize"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL path names."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str | None = None


def target_of(path: str, find: Callable[[str, str, str], Resource | None]) -> Target:
    """What a path names; `find` knows the resources by group, version and plural.

    Raises:
        NotFoundError: nothing that is served.
    """
    root, *parts = path.strip("/").split("/")
    if root == "apis" and parts:
        group, *parts = parts
    elif root == "api":
        group = ""
    else:
        raise statuses.no_such_resource()
    if len(parts) < 2:
        raise statuses.no_such_resource()
    version, *parts = parts
    namespace = None
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
        _, namespace, *parts = parts
    resource = find(group, version, parts[0])
    if resource is None or len(parts) > 3 or (namespace is not None and not resource.namespaced):
        raise statuses.no_such_resource()
    return Target(resource, namespace, *parts[1:])


def selection_of(target: Target, query: Mapping[str, str], accept: str) -> Selection:
    """Which objects a list or watch is about."""
    return Selection(
        target.namespace,
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        metadata_only="as=PartialObjectMetadata" in accept,
    )


def list_options_of(query: Mapping[str, str]) -> ListOptions:
    """How to list."""
    return ListOptions(
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        _number(query, "limit") or 0,
        query.get("continue", ""),
    )


def watch_options_of(query: Mapping[str, str]) -> WatchOptions:
    """How to watch."""
    return WatchOptions(
        query.get("resourceVersion", ""),
        _number(query, "timeoutSeconds") or WatchOptions().timeout_seconds,
        send_initial_events=is_true(query, "sendInitialEvents"),
    )


def log_options_of(query: Mapping[str, str]) -> LogOptions:
    """What part of a log to read."""
    return LogOptions(
        query.get("container"),
        is_true(query, "follow"),
        is_true(query, "previous"),
        is_true(query, "timestamps"),
        query.get("sinceTime"),
        _number(query, "tailLines"),
    )


def delete_options_of(body: bytes) -> DeleteOptions:
    """How to delete."""
    options = body_of(body) if body else {}
    preconditions = options.get("preconditions") or {}
    policy = options.get("propagationPolicy")
    try:
        propagation = Propagation(policy) if policy else None
    except ValueError as error:
        raise statuses.bad_request(f"propagationPolicy {policy!r} is not one of {', '.join(Propagation)}") from error
    return DeleteOptions(
        propagation,
        options.get("gracePeriodSeconds"),
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
    )


def body_of(body: bytes) -> Any:
    """The JSON of a request.

    Raises:
        BadRequestError: it is none.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise statuses.bad_request(f"the body of the request is not JSON: {error}") from error


def object_of(body: bytes, target: Target) -> Object:
    """The object in a request, with the namespace and name of the URL.

    Raises:
        BadRequestError: it is no object, or another than the URL names.
    """
    obj = body_of(body)
    if not isinstance(obj, dict):
        raise statuses.bad_request("the body of the request is not an object")
    metadata = dict(metadata_of(obj))
    for field, expected in (("namespace", target.namespace), ("name", target.name)):
        if expected and metadata.setdefault(field, expected) != expected:
            raise statuses.bad_request(
                f"the {field} of the object ({metadata[field]}) does not match that of the URL ({expected})"
            )
    return obj | {"metadata": metadata}


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Whether a parameter asks for something."""
    return query.get(name) in {"true", "1"}


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isdecimal():
        raise statuses.bad_request(f"{name} is not a number: {text!r}")
    return int(text)
