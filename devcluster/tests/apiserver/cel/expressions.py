"""Evaluates expressions over a small object."""

from __future__ import annotations

from typing import Any, Final

from trainer_devcluster.apiserver.cel import types
from trainer_devcluster.apiserver.cel.program import compile_expression
from trainer_devcluster.apiserver.cel.values import some

SELF: Final = types.object_of(
    "self",
    {
        "n": types.INT,
        "d": types.DOUBLE,
        "s": types.STRING,
        "list": types.list_of(types.STRING),
        "map": types.map_of(types.STRING, types.INT),
        "inner": types.object_of("inner", {"ok": types.BOOL, "absent": types.STRING}),
        "any": types.DYN,
    },
)
VALUE: Final[dict[str, Any]] = {
    "n": 3, "d": 1.5, "s": "hällo", "list": ["b", "a"], "map": {"k": 1}, "inner": {"ok": True}, "any": "5",
}  # fmt: skip
VARIABLES: Final = {"self": SELF, "maybe": types.optional_of(SELF)}


def evaluate(source: str) -> Any:
    """The value of an expression about `self`."""
    return compile_expression(source, VARIABLES).evaluate({"self": VALUE, "maybe": some(VALUE)})
