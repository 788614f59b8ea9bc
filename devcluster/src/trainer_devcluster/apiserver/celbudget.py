"""Budget: how expensive the CEL rules of one schema may be, and what is said when they are more.

Source: the API server's validation of custom resource definitions. Every rule is charged with its worst case, as often
as what it stands on can occur.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainer.kube.field_errors import forbidden
from trainer_devcluster.apiserver.cel.ranges import LARGEST
from trainer_devcluster.apiserver.celsizes import MAX_REQUEST_BYTES, smallest_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.field_errors import FieldError
    from trainer_devcluster.apiserver.cel.ranges import Range

    Schema = Mapping[str, Any]

EXPRESSION_LIMIT: Final = 10_000_000
"""Units that one expression may cost."""
SCHEMA_LIMIT: Final = 100_000_000
"""Units that all expressions of a schema may cost together."""
_NAMED: Final = 4
"""Of the expressions that exceed the limit together, only this many are named."""
_WORTH_NAMING: Final = SCHEMA_LIMIT // 100
_MANY: Final = 100.0
_FEW: Final = 1.5
_REMEDY: Final = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)


class Charge(NamedTuple):
    """What an expression costs."""

    path: str
    cost: int


@dataclass(slots=True)
class Budget:
    """Adds up what the expressions of a schema cost."""

    forgiving: bool = False
    """Whether single expressions may exceed their limit, as in a schema that was accepted before; default false."""
    charges: list[Charge] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The cost of everything so far."""
        return min(sum(charge.cost for charge in self.charges), LARGEST)

    def charge(self, path: str, title: str, each: Range | None, times: int) -> Iterator[FieldError]:
        """Take note of an expression, and refuse it when it is too expensive by itself.

        Args:
            path: where it is in the definition.
            title: how texts call it: `rule` or `messageExpression`.
            each: what it costs to evaluate it; None when that is not known counts nothing.
            times: how often it may be evaluated.
        """
        cost = 0 if each is None else min(each.most * times, LARGEST)
        self.charges.append(Charge(path, cost))
        if cost > EXPRESSION_LIMIT and not self.forgiving:
            yield forbidden(path, _exceeds(f"estimated {title} cost", cost, EXPRESSION_LIMIT))

    def check_total(self, path: str) -> Iterator[FieldError]:
        """Refuse the schema when all of it is too expensive, the most expensive expressions first.

        Args:
            path: where the schema is in the definition.
        """
        if self.total <= SCHEMA_LIMIT:
            return
        expensive = [charge for charge in self.charges if charge.cost >= _WORTH_NAMING]
        for charge in sorted(expensive, key=lambda each: each.cost, reverse=True)[:_NAMED]:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(charge.path, detail)
        title = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _exceeds(title, self.total, SCHEMA_LIMIT))


def times_below(schema: Schema, times: int | None) -> int | None:
    """How often what stands directly below a node can occur in an object; None when nothing bounds it.

    Args:
        schema: the node.
        times: how often the node can occur.
    """
    keyword = "maxItems" if schema.get("type") == "array" else "maxProperties"
    if keyword == "maxProperties" and (schema.get("type") != "object" or schema.get("additionalProperties") is None):
        return times
    bound = schema.get(keyword)
    return None if times is None or bound is None else min(times * max(int(bound), 0), LARGEST)


def times_in_request(schema: Schema, *, is_resource: bool = False) -> int:
    """How often a node can occur in a request with nothing else in it.

    Args:
        schema: the node.
        is_resource: whether it describes a whole object.
    """
    return MAX_REQUEST_BYTES // (smallest_json(schema, is_resource=is_resource) + 1)


def _exceeds(title: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:f}x" if factor < _FEW else f"{factor:.1f}x" if factor <= _MANY else f"more than {_MANY:.0f}x"
    return f"{title} exceeds budget by factor of {shown} ({_REMEDY})"
