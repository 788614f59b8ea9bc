"""Request parameters: query strings and option bodies, checked and typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainer.kube.client import Propagation
from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError, invalid, not_supported, too_long
from trainer.kube.objects import Object
from trainer_kube_testing.api_semantics import statuses

META_GROUP = "meta.k8s.io"
MAX_FIELD_MANAGER = 128
_INTEGER = re.compile("[+-]?[0-9]+")
_INTEGER_DIGITS = 20
"""More than any number of 64 bits has."""
_MIN_INTEGER, _MAX_INTEGER = -(1 << 63), (1 << 63) - 1
_MAX_RESOURCE_VERSION = (1 << 64) - 1
_FALSE = frozenset({"0", "false"})


class FieldValidation(StrEnum):
    """The treatment of unknown fields (query parameter `fieldValidation`)."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class ResourceVersionMatch(StrEnum):
    """How the resourceVersion of a list is meant."""

    NOT_OLDER_THAN = "NotOlderThan"
    EXACT = "Exact"


@dataclass(frozen=True, slots=True)
class ListParameters:
    """Parameters of lists and watches."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: int | None = None
    """None when unset: the most recent state."""
    match: ResourceVersionMatch | None = None
    limit: int = 0
    continue_token: str = ""
    watch: bool = False
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteParameters:
    """Parameters of creates, updates and patches."""

    field_manager: str
    """Given, or the user agent up to its first slash."""
    explicit_manager: bool = False
    """Whether the request named the field manager."""
    dry_run: bool = False
    field_validation: FieldValidation = FieldValidation.WARN
    force: bool | None = None
    """Take fields over from other managers; only server-side apply may say so."""


@dataclass(frozen=True, slots=True)
class DeleteParameters:
    """DeleteOptions, from the body or the query."""

    grace_period_seconds: int | None = None
    propagation: Propagation | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


def boolean(query: Mapping[str, str], name: str) -> bool:
    """A query parameter as client libraries write booleans: anything but absent, `0` and `false` is true."""
    value = query.get(name)
    return value is not None and value.lower() not in _FALSE


def integer(query: Mapping[str, str], name: str) -> int | None:
    """A query parameter that holds a number.

    Raises:
        ApiError: 400, it is not a whole number of 64 bits.
    """
    text = query.get(name)
    if text is None:
        return None
    if not _INTEGER.fullmatch(text) or len(text) > _INTEGER_DIGITS:
        raise statuses.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def list_parameters(query: Mapping[str, str], *, streams_lists: bool = True) -> ListParameters:
    """The parameters of a list or watch.

    Args:
        query: of the request.
        streams_lists: whether a watch may ask for initial events.

    Raises:
        ApiError: 400 for values that cannot be read, 422 for combinations that make no sense; a watch from an
            unreadable resource version gets 500, as from the real server.
    """
    watch = boolean(query, "watch")
    match = query.get("resourceVersionMatch") or None
    if match is not None and match not in set(ResourceVersionMatch):
        supported = ", ".join(f'"{name}"' for name in ResourceVersionMatch)
        raise _invalid_list("NotSupported", f'Unsupported value: "{match}": supported values: {supported}')
    parameters = ListParameters(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=_resource_version(query.get("resourceVersion", ""), watch=watch),
        match=ResourceVersionMatch(match) if match else None,
        limit=max(integer(query, "limit") or 0, 0),
        continue_token=query.get("continue", ""),
        watch=watch,
        timeout_seconds=integer(query, "timeoutSeconds"),
        allow_bookmarks=boolean(query, "allowWatchBookmarks"),
        send_initial_events=boolean(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    _check_watch(parameters, streams_lists=streams_lists) if watch else _check_list(parameters)
    return parameters


def write_parameters(query: Mapping[str, str], user_agent: str, verb: str = "patch") -> WriteParameters:
    """The parameters of a create, update or patch; errors name the options of the verb.

    Raises:
        ApiError: 400 or 422, a value is not one of those allowed.
    """
    manager = query.get("fieldManager", "")
    validation = query.get("fieldValidation") or FieldValidation.WARN
    dry_run = [query["dryRun"]] if query.get("dryRun") else []
    causes = _field_manager_causes(manager) + _dry_run_causes(dry_run)
    if validation not in set(FieldValidation):
        causes.append(not_supported("fieldValidation", validation, sorted(["", *FieldValidation])))
    if causes:
        raise statuses.invalid(f"{verb.capitalize()}Options", META_GROUP, "", causes)
    return WriteParameters(
        field_manager=manager or user_agent.split("/", 1)[0][:MAX_FIELD_MANAGER] or "unknown",
        explicit_manager=bool(manager),
        dry_run=bool(dry_run),
        field_validation=FieldValidation(validation),
        force=boolean(query, "force") if "force" in query else None,
    )


def delete_parameters(query: Mapping[str, str], body: Object | None) -> DeleteParameters:
    """The options of a deletion: those of the body, a well-typed DeleteOptions, or without one those of the query.

    Raises:
        ApiError: 400 for values that cannot be read, 422 for values that are not allowed.
    """
    options = body or _delete_options(query)
    grace, preconditions = options.get("gracePeriodSeconds"), options.get("preconditions") or {}
    if grace is not None and grace < 0:
        raise _invalid_delete("FieldValueInvalid", f"Invalid value: {grace}: must be at least 0", "gracePeriodSeconds")
    dry_run = options.get("dryRun") or []
    if causes := _dry_run_causes(dry_run):
        raise statuses.invalid("DeleteOptions", META_GROUP, "", causes)
    return DeleteParameters(
        grace_period_seconds=grace,
        propagation=_propagation(options.get("propagationPolicy"), options.get("orphanDependents")),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(dry_run),
    )


def _delete_options(query: Mapping[str, str]) -> Object:
    return {
        "gracePeriodSeconds": integer(query, "gracePeriodSeconds"),
        "propagationPolicy": query.get("propagationPolicy") or None,
        "orphanDependents": boolean(query, "orphanDependents") if "orphanDependents" in query else None,
        "dryRun": [query["dryRun"]] if query.get("dryRun") else [],
    }


def _propagation(policy: str | None, orphan: bool | None) -> Propagation | None:
    if orphan is not None:
        if policy is not None:
            message = "Invalid value: orphanDependents and deletionPropagation cannot be both set"
            raise _invalid_delete("FieldValueInvalid", message, "propagationPolicy")
        return Propagation.ORPHAN if orphan else Propagation.BACKGROUND
    if policy is None:
        return None
    if policy not in set(Propagation):
        message = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
        raise _invalid_delete("FieldValueNotSupported", message, "propagationPolicy")
    return Propagation(policy)


def _dry_run_causes(values: list[Any]) -> list[FieldError]:
    return [not_supported("dryRun", values, ["All"])] if any(value != "All" for value in values) else []


def _field_manager_causes(manager: str) -> list[FieldError]:
    causes = [too_long("fieldManager", MAX_FIELD_MANAGER)] if len(manager.encode()) > MAX_FIELD_MANAGER else []
    return causes + [
        invalid("fieldManager", manager, f"invalid character U+{ord(character):04X} (at position {position})")
        for position, character in enumerate(manager)
        if not character.isprintable()
    ]


def _resource_version(text: str, *, watch: bool) -> int | None:
    if not text:
        return None
    problem = "invalid syntax"
    if text.isascii() and text.isdigit():
        if len(text) <= _INTEGER_DIGITS and int(text) <= _MAX_RESOURCE_VERSION:
            return int(text)
        problem = "value out of range"
    message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {problem}'
    if watch:
        raise statuses.failure(500, "", message)
    raise statuses.bad_request(f"invalid resource version: {message}")


def _check_list(parameters: ListParameters) -> None:
    if parameters.send_initial_events is not None:
        message = "Forbidden: sendInitialEvents is forbidden for list"
        raise _invalid_list("Forbidden", message, "sendInitialEvents")
    if parameters.match is None:
        if parameters.continue_token and parameters.resource_version:
            raise statuses.bad_request("specifying resource version is not allowed when using continue")
        return
    if parameters.continue_token:
        raise _invalid_list("Forbidden", "Forbidden: resourceVersionMatch is forbidden when continue is provided")
    if parameters.resource_version is None:
        message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _invalid_list("Forbidden", message)
    if parameters.match is ResourceVersionMatch.EXACT and parameters.resource_version == 0:
        message = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        raise _invalid_list("Forbidden", message)


def _check_watch(parameters: ListParameters, *, streams_lists: bool) -> None:
    if parameters.send_initial_events is None:
        if parameters.match is not None:
            message = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise _invalid_list("Forbidden", message)
        return
    if parameters.match is not ResourceVersionMatch.NOT_OLDER_THAN:
        message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _invalid_list("Forbidden", message)
    if not streams_lists:
        message = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        raise _invalid_list("Forbidden", message, "sendInitialEvents")


def _invalid_list(reason: str, message: str, name: str = "resourceVersionMatch") -> ApiError:
    return statuses.invalid("ListOptions", META_GROUP, "", [FieldError(name, message, f"FieldValue{reason}")])


def _invalid_delete(reason: str, message: str, name: str) -> ApiError:
    return statuses.invalid("DeleteOptions", META_GROUP, "", [FieldError(name, message, reason)])
