"""Docstrings of constants and of members of classes, which Python itself does not keep."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Constant(NamedTuple):
    """A name with a text as its value."""

    name: str
    value: str
    docstring: str
    """Empty if there is none."""


def members(enum: type[StrEnum]) -> list[Constant]:
    """The members of an enumeration, in their order."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(enum)))
    found = {constant.name: constant for constant in _assigned(tree.body[0].body)}  # type: ignore[attr-defined]
    return [found[member.name] for member in enum]


@functools.cache
def constants(path: Path) -> list[Constant]:
    """The constants of a module that are texts."""
    return list(_assigned(ast.parse(path.read_text(encoding="utf-8")).body))


def _assigned(body: Sequence[ast.stmt]) -> Iterator[Constant]:
    for statement, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() as value)):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str() as value)):
                pass
            case _:
                continue
        match following:
            case ast.Expr(value=ast.Constant(value=str() as docstring)):
                yield Constant(name, value, inspect.cleandoc(docstring))
            case _:
                yield Constant(name, value, "")
