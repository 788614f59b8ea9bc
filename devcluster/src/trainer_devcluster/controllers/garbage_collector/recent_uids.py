"""A bounded memory of object uids."""

from __future__ import annotations

from collections import OrderedDict


class RecentUids:
    """The uids that were added last; a uid is never used again, so an old one may be forgotten."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        """Remember a uid, forgetting the oldest when there are too many."""
        self._uids[uid] = None
        if len(self._uids) > self._limit:
            self._uids.popitem(last=False)

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids
