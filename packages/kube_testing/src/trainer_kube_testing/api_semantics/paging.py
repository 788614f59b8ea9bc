"""Paging: consistent lists in pieces, held together by an opaque continue token."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainer.kube.objects import Object, ObjectKey
from trainer_kube_testing.api_semantics import statuses

_T = TypeVar("_T")

_INCONSISTENT = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class CompactedError(Exception):
    """The revision is older than the history."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """One piece of a list."""

    items: list[_T]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    """How many objects follow; None on the last page."""


@dataclass(frozen=True, slots=True)
class ListPosition:
    """Where a list goes on."""

    revision: int
    """Revision of the first page; -1 for whatever is current."""
    after: ObjectKey
    """The last object of the page before."""

    def encode(self) -> str:
        """The continue token."""
        start = f"{self.after.namespace}/{self.after.name}\0"
        token = json.dumps({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start}, separators=(",", ":"))
        return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, token: str) -> ListPosition:
        """The position that a token stands for.

        Raises:
            BadRequestError: the token is not one of ours.
        """
        try:
            fields = _decoded(token)
            namespace, _, name = fields["start"].rstrip("\0").partition("/")
            return cls(int(fields["rv"]), ObjectKey(namespace, name))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise statuses.bad_request(f"invalid continue token: continue key is not valid: {error}") from error


def _decoded(token: str) -> Object:
    content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    if not content.startswith(b"{"):
        raise ValueError(f"invalid character {content[:1].decode('latin-1')!r} looking for beginning of value")
    fields: Object = json.loads(content)
    return fields


class Lists(Generic[_T]):
    """Reads the list of one collection, page by page.

    `snapshot` gives all items ordered by namespace and name, now (None) or as they were at a revision, and raises
    `CompactedError`; `current` tells the revision of the present.
    """

    def __init__(
        self, snapshot: Callable[[int | None], Sequence[_T]], key: Callable[[_T], ObjectKey], current: Callable[[], int]
    ) -> None:
        self._snapshot, self._key, self._current = snapshot, key, current

    def first_page(self, select: Callable[[_T], bool], limit: int, revision: int | None = None) -> Page[_T]:
        """The first page, of the present state or that of a revision.

        Raises:
            GoneError: the history does not reach back to the revision.
        """
        try:
            items = self._snapshot(revision)
        except CompactedError as error:
            raise statuses.expired(str(error)) from error
        return self._page(items, select, limit, self._current() if revision is None else revision)

    def next_page(self, select: Callable[[_T], bool], limit: int, token: str) -> Page[_T]:
        """The page that follows the one that came with this token.

        Raises:
            BadRequestError: the token is malformed.
            GoneError: the token is too old; its Status has a token for an inconsistent rest.
        """
        position = ListPosition.decode(token)
        consistent = position.revision != _INCONSISTENT
        try:
            items = self._snapshot(position.revision if consistent else None)
        except CompactedError as error:
            raise statuses.expired(
                _TOO_OLD, continue_token=ListPosition(_INCONSISTENT, position.after).encode()
            ) from error
        rest = [item for item in items if self._key(item) > position.after]
        return self._page(rest, select, limit, position.revision if consistent else self._current())

    def _page(self, items: Sequence[_T], select: Callable[[_T], bool], limit: int, revision: int) -> Page[_T]:
        selected = [item for item in items if select(item)]
        if not limit or len(selected) <= limit:
            return Page(selected, revision)
        kept = selected[:limit]
        token = ListPosition(revision, self._key(kept[-1])).encode()
        return Page(kept, revision, token, len(selected) - limit)
