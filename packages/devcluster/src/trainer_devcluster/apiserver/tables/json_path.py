"""JSONPath of printer columns of custom resources: fields and unions of them, items of lists, and filters by a text.

Source: Kubernetes documentation, "JSONPath Support".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Step: TypeAlias = Callable[[list[Any]], list[Any]]
"""From the values found so far to the values one step further."""

_FIELD: Final = r"(?:\\.|[^\\.*\[\]{}\s()=!<>,'\"])+"
_STEP: Final = re.compile(
    rf"\.(?P<field>{_FIELD})"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[(?P<union>'[^']*'(?:,\s*'[^']*')+)\]"
    r"|\[(?P<start>-?\d*)(?P<colon>:)?(?P<end>-?\d*)\]"
    r"|\[(?P<every>\*)\]"
    rf"|\[\?\(\s*@(?P<path>(?:\.{_FIELD})+)\s*(?P<operator>==|!=)\s*(?P<quote>['\"])(?P<text>.*?)(?P=quote)\s*\)\]"
)


class JSONPathError(ValueError):
    """A path that cannot be read; the message quotes it and says where."""


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A parsed path; missing fields and indexes out of range give no result instead of an error."""

    _steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> JSONPath:
        """Parse `.spec.replicas`, `.items[0]`, `.status.conditions[?(@.type=="Ready")].status` and the like.

        Raises:
            JSONPathError: the text is not a path, or one with what is not supported.
        """
        steps, position = [], 0
        while position < len(text):
            match = _STEP.match(text, position)
            if match is None or (match["start"] == "" and match["colon"] is None):
                raise JSONPathError(f"{text!r}: the dev cluster cannot read {text[position:]!r}")
            steps.append(_step(match))
            position = match.end()
        return cls(tuple(steps))

    def find(self, value: Any) -> list[Any]:
        """All values at the path, in document order; parts of `value`, not copies."""
        found = [value]
        for step in self._steps:
            found = step(found)
        return found


def _step(match: re.Match[str]) -> Step:
    name = match["quoted"] if match["field"] is None else match["field"]
    if name is not None:
        name = re.sub(r"\\(.)", r"\1", name)
        return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]
    if match["union"] is not None:
        names = re.findall("'([^']*)'", match["union"])
        return lambda values: [each[key] for each in values if isinstance(each, dict) for key in names if key in each]
    if match["path"] is not None:
        return _filter(JSONPath.parse(match["path"]), match["text"], equal=match["operator"] == "==")
    if match["every"] is not None:
        return lambda values: [item for value in values if isinstance(value, list) for item in value]
    start = int(match["start"]) if match["start"] else None
    end = int(match["end"]) if match["end"] else None
    if match["colon"] is None and start is not None:
        end = start + 1 or None
    return lambda values: [item for value in values if isinstance(value, list) for item in value[start:end]]


def _filter(path: JSONPath, text: str, *, equal: bool) -> Step:
    def holds(item: Any) -> bool:
        found = path.find(item)[:1]
        return bool(found) and isinstance(found[0], str) and (found[0] == text) is equal

    return lambda values: [item for value in values if isinstance(value, list) for item in value if holds(item)]
