"""Lists as the API server reads them: at which resource version, and in pages of one snapshot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.api_semantics.paging import CompactedError, Lists
from trainer.kube.client import ListOptions, ObjectList
from trainer.kube.objects import key_of
from trainer.kube.selection import Matcher

if TYPE_CHECKING:
    from trainer.kube.objects import ObjectKey
    from trainer.kube.resource import Resource
    from trainer.kube.selection import Selection
    from trainer.kube.testing.storage import Storage, Stored


def list_page(storage: Storage, resource: Resource, selection: Selection, options: ListOptions) -> ObjectList:
    """One page.

    Kubernetes documentation, "API Concepts": without a version a list is the newest, "0" takes any, another takes
    anything not older, except that with a limit or as "Exact" it is read as it was at that very version.

    Raises:
        GoneError: the version or the continue token is older than the history.
        ServerTimeoutError: the version is yet to come (504, ResourceVersionTooLarge).
    """
    lists = Lists(partial(_snapshot, storage, resource), _key, lambda: storage.version)
    matcher = Matcher(selection)

    def select(stored: Stored) -> bool:
        return matcher.matches(stored.obj)

    if options.continue_token:
        if options.resource_version:
            raise statuses.bad_request("specifying resource version is not allowed when using continue")
        page = lists.next_page(select, options.limit, options.continue_token)
    else:
        page = lists.first_page(select, options.limit, _exact_version(storage, options))
    raw = [stored.encoded(metadata_only=selection.metadata_only) for stored in page.items]
    return ObjectList(raw, str(page.revision), page.continue_token)


def _snapshot(storage: Storage, resource: Resource, version: int | None) -> list[Stored]:
    if version is not None and version < storage.oldest:
        raise CompactedError(version, storage.oldest)
    collection = storage.collection(resource)
    objects = collection.objects if version is None else collection.at(version)
    return [objects[key] for key in sorted(objects)]


def _key(stored: Stored) -> ObjectKey:
    return key_of(stored.obj)


def _exact_version(storage: Storage, options: ListOptions) -> int | None:
    """The version to read at; None for the present."""
    match = options.resource_version_match
    if match not in {"", "Exact", "NotOlderThan"}:
        raise statuses.bad_request(f"resourceVersionMatch {match!r} is neither Exact nor NotOlderThan")
    if match and not options.resource_version:
        raise statuses.bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
    version = parse_version(options.resource_version)
    if version > storage.version:
        raise statuses.resource_version_too_large(version, storage.version)
    if match == "Exact" and not version:
        raise statuses.bad_request('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    return version if version and (match == "Exact" or (not match and options.limit)) else None


def parse_version(text: str) -> int:
    """A resource version of a request; 0 when there is none.

    Raises:
        BadRequestError: this server never gave out such a version.
    """
    if not text:
        return 0
    if not text.isdecimal():
        raise statuses.bad_request(f"invalid resource version {text!r}")
    return int(text)
