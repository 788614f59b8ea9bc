"""What to name instead of a runtime that does not exist."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

_COMPARED: Final = 500
"""Runtimes that a name is compared with; each costs time in proportion to its length."""
_FINALISTS: Final = 3
"""Of those, the ones with the most letters in common are compared letter by letter, in quadratic time."""
_LONGEST: Final = 100
"""Characters of a name that is compared with others."""
_SIMILAR: Final = 0.8
"""How much of two names must be the same, between 0 and 1."""
_OTHER_LENGTH: Final = 2
"""Characters that one of two similar names may have more: `torch-distributed-a100` is not a typing error."""
_LISTED: Final = 16
_LISTED_CHARACTERS: Final = 320


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The runtimes that a TrainJob can name instead; the texts have bounded length."""

    other_kind: str = ""
    """The kind under which there is a runtime of this name; "" when there is none."""
    similar: str = ""
    """The name that is most like it; "" when none is."""
    names: tuple[str, ...] = ()
    """The first names of runtimes of this kind."""
    unlisted: int = 0
    """How many more there are."""

    @property
    def is_mistake(self) -> bool:
        """Whether the reference is most likely a mistake, and not to a runtime that is created later."""
        return bool(self.other_kind or self.similar)

    def without_names(self) -> Alternatives:
        """For people who may not list runtimes: only whether the very name exists as another kind."""
        return replace(self, similar="", names=(), unlisted=0)

    def hint(self, name: str) -> str:
        """Sentences to add to a message, such as `. Did you mean torch-distributed?`; "" without any."""
        if self.other_kind:
            return f". There is a {self.other_kind} {name}: set spec.runtimeRef.kind to {self.other_kind}"
        if self.similar:
            return f". Did you mean {self.similar}?"
        if not self.names:
            return ""
        names = f"{', '.join(self.names)} and {self.unlisted} more" if self.unlisted else ", ".join(self.names)
        return f". There {'is' if len(self.names) + self.unlisted == 1 else 'are'} {names}"


def alternatives(name: str, names: Iterable[str], other_kind: str = "") -> Alternatives:
    """What to name instead of a runtime that does not exist."""
    present = sorted(names)
    listed = list(_listed(present))
    return Alternatives(other_kind, _most_similar(name, present), tuple(listed), len(present) - len(listed))


def _listed(names: list[str]) -> Iterable[str]:
    left = _LISTED_CHARACTERS
    for name in names[:_LISTED]:
        left -= len(name)
        if left < 0:
            return
        yield name


def _most_similar(name: str, names: list[str]) -> str:
    if len(name) > _LONGEST:
        return ""
    matcher = SequenceMatcher(b=name.lower(), autojunk=False)
    rated: list[tuple[float, str]] = []
    close = (other for other in names if len(other) <= _LONGEST and abs(len(other) - len(name)) <= _OTHER_LENGTH)
    for other in islice(close, _COMPARED):
        matcher.set_seq1(other)
        rated.append((matcher.quick_ratio(), other))
    best, most_similar = _SIMILAR, ""
    for upper_bound, other in heapq.nlargest(_FINALISTS, rated):
        matcher.set_seq1(other)
        if upper_bound >= best and (ratio := matcher.ratio()) >= best:
            best, most_similar = ratio, other
    return most_similar
