"""Lists as the API server reads them: at which resource version, and in pages of one snapshot."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from trainer.kube.client import ListOptions, ObjectList
from trainer.kube.testing import statuses

if TYPE_CHECKING:
    from trainer.kube.resource import Resource
    from trainer.kube.selection import Selection
    from trainer.kube.testing.storage import Storage, Stored


class Pages:
    """Reads lists; pages after the first come from the snapshot of the first until that is forgotten.

    Kubernetes documentation, "API Concepts": without a version a list is the newest, "0" takes any, another takes
    anything not older, except that with a limit or as "Exact" it is read as it was at that very version.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._numbers = itertools.count(1)
        self._snapshots: dict[str, tuple[int, list[Stored]]] = {}

    def page(self, resource: Resource, selection: Selection, options: ListOptions) -> ObjectList:
        """One page.

        Raises:
            GoneError: the version or the continue token is older than the history.
            ServerTimeoutError: the version is yet to come (504, ResourceVersionTooLarge).
        """
        if options.continue_token:
            version, objects = self._continue(options)
        else:
            exact = self._exact_version(options)
            version = self._storage.version if exact is None else exact
            objects = self._storage.select(resource, selection, exact)
        rest: list[Stored] = []
        if options.limit:
            objects, rest = objects[: options.limit], objects[options.limit :]
        raw = [stored.encoded(metadata_only=selection.metadata_only) for stored in objects]
        return ObjectList(raw, str(version), self._remember(version, rest) if rest else "")

    def forget(self) -> None:
        """Let all continue tokens expire."""
        self._snapshots.clear()

    def _continue(self, options: ListOptions) -> tuple[int, list[Stored]]:
        if options.resource_version:
            raise statuses.bad_request("specifying resource version is not allowed when using continue")
        try:
            return self._snapshots[options.continue_token]
        except KeyError:
            raise statuses.expired("The provided continue parameter is too old, list again without it") from None

    def _exact_version(self, options: ListOptions) -> int | None:
        """The version to read at; None for the present."""
        match = options.resource_version_match
        if match not in {"", "Exact", "NotOlderThan"}:
            raise statuses.bad_request(f"resourceVersionMatch {match!r} is neither Exact nor NotOlderThan")
        if match and not options.resource_version:
            raise statuses.bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
        version = parse_version(options.resource_version)
        if version > self._storage.version:
            raise statuses.too_large_resource_version(version, self._storage.version)
        if match == "Exact" and not version:
            raise statuses.bad_request('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
        if version and (match == "Exact" or (not match and options.limit)):
            if version < self._storage.oldest:
                raise statuses.expired(f"The resourceVersion {version} for the provided list is too old")
            return version
        return None

    def _remember(self, version: int, rest: list[Stored]) -> str:
        token = f"{version}-{next(self._numbers)}"
        self._snapshots[token] = version, rest
        return token


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
