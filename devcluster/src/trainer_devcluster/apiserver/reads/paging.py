"""Paging: consistent lists in pieces, held together by an opaque continue token."""

from __future__ import annotations

import base64
import json
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.objects import ObjectKey, key_of
from trainer_devcluster.apiserver.storage.storage import CompactedError
from trainer_devcluster.apiserver.wire import json_syntax, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.storage.storage import Partition, Storage

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - a format name
_TOKEN_ALPHABET = frozenset(f"{string.ascii_letters}{string.digits}-_")
_INCONSISTENT = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One piece of a list."""

    items: list[Object]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    """How many objects follow; None on the last page."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a list goes on."""

    revision: int
    """Revision of the first page; -1 for whatever is current."""
    after: ObjectKey
    """The last object of the page before."""

    def encode(self) -> str:
        """The continue token."""
        start = f"{self.after.namespace}/{self.after.name}\0"
        token = json.dumps({"v": _TOKEN_VERSION, "rv": self.revision, "start": start}, separators=(",", ":"))
        return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, token: str) -> Position:
        """The position that a token stands for.

        Raises:
            StatusError: 400, the token is not one of ours.
        """
        try:
            return cls._decoded(token)
        except (ValueError, RecursionError) as error:
            message = f"invalid continue token: continue key is not valid: {error}"
            raise status.bad_request(message) from error

    @classmethod
    def _decoded(cls, token: str) -> Position:
        illegal = next((at for at, character in enumerate(token) if character not in _TOKEN_ALPHABET), None)
        if illegal is not None or len(token) % 4 == 1:
            raise ValueError(f"illegal base64 data at input byte {len(token) if illegal is None else illegal}")
        content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        json_syntax.check(content)
        fields = json.loads(content)
        if not isinstance(fields, dict):
            raise ValueError("the token must hold an object")  # noqa: TRY004 - one error for all
        version, revision, start = fields.get("v"), fields.get("rv"), fields.get("start")
        if version != _TOKEN_VERSION:
            raise ValueError("server does not recognize this encoded version")
        if type(revision) is not int or not revision:
            raise ValueError(f"incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
        if not isinstance(start, str) or not start:
            raise ValueError(f"encoded start key empty (version {_TOKEN_VERSION})")
        namespace, _, name = start.rstrip("\0").partition("/")
        return cls(revision, ObjectKey(namespace, name))


def first_page(
    storage: Storage, partition: Partition, select: Callable[[Object], bool], limit: int, revision: int | None
) -> Page:
    """The first page of a list, of the present state or that of a revision.

    Raises:
        StatusError: 410, the history does not reach back to the revision.
    """
    try:
        objects = storage.snapshot(partition, revision)
    except CompactedError as error:
        raise status.expired(str(error)) from error
    return _page(objects, select, limit, storage.revision if revision is None else revision)


def next_page(storage: Storage, partition: Partition, select: Callable[[Object], bool], limit: int, token: str) -> Page:
    """The page that follows the one that came with this token.

    Raises:
        StatusError: 400, the token is malformed; 410, it is too old, in which case the error carries a token for an
            inconsistent rest.
    """
    position = Position.decode(token)
    consistent = position.revision != _INCONSISTENT
    try:
        objects = storage.snapshot(partition, position.revision if consistent else None)
    except CompactedError as error:
        raise status.expired(_TOO_OLD, continue_token=Position(_INCONSISTENT, position.after).encode()) from error
    rest = [obj for obj in objects if key_of(obj) > position.after]
    return _page(rest, select, limit, position.revision if consistent else storage.revision)


def _page(objects: list[Object], select: Callable[[Object], bool], limit: int, revision: int) -> Page:
    selected = [obj for obj in objects if select(obj)]
    if not limit or len(selected) <= limit:
        return Page(selected, revision)
    items = selected[:limit]
    token = Position(revision, key_of(items[-1])).encode()
    return Page(items, revision, token, len(selected) - limit)
