"""The query of a request for a list of the history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from multidict import MultiMapping

from trainer_dashboard.history.queries import Cursor, Filter
from trainer_dashboard.requests.user_requests import NAME

_WORDS: Final = 8
_LONGEST_TEXT: Final = 256


class WrongQuestionError(Exception):
    """The query of a request is none that the page sends."""


@dataclass(frozen=True, slots=True)
class Question:
    """The query of a request for a list."""

    namespace: str
    which: Filter
    """Not yet of a cluster."""
    after: Cursor | None

    @classmethod
    def of(cls, query: MultiMapping[str]) -> Question:
        """Read it.

        Raises:
            WrongQuestionError: it is malformed.
        """
        texts = {name: query.get(name, "") for name in ("namespace", "name", "state", "q", "before", "after")}
        if longest := next((name for name, text in texts.items() if len(text) > _LONGEST_TEXT), ""):
            raise WrongQuestionError(f"{longest} must have at most {_LONGEST_TEXT} characters")
        if wrong := next((name for name, text in texts.items() if "\0" in text), ""):
            raise WrongQuestionError(f"{wrong} must not have the character NUL")
        before = _number("before", texts["before"]) if texts["before"] else None
        words = tuple(texts["q"].split()[:_WORDS])
        only_deleted = query.get("deleted") == "true"
        which = Filter(name=texts["name"], state=texts["state"], words=words, only_deleted=only_deleted, before=before)
        return cls(texts["namespace"], which, _cursor(texts["after"]) if texts["after"] else None)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise WrongQuestionError(f"{name} must be seconds since 1970")
    return number


def _cursor(text: str) -> Cursor:
    end, separator, uid = text.partition("/")
    if not separator or not NAME.fullmatch(uid):
        raise WrongQuestionError("after must be what the page before has as next")
    return Cursor(_number("after", end), uid)
