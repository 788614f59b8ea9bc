"""Parser: from the text of an expression to its syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer_devcluster.apiserver.cel.errors import CompileError, Issue
from trainer_devcluster.apiserver.cel.macros import GLOBAL_MACROS, MEMBER_MACROS, MacroError
from trainer_devcluster.apiserver.cel.syntax import Call, Entry, Ident, ListOf, Literal, MapOf, Node, Select
from trainer_devcluster.apiserver.cel.tokens import Token, tokenize
from trainer_devcluster.apiserver.cel.values import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_DEPTH: Final = 60
"""Nested brackets; the real server stops at 250 levels of its grammar."""
_RESERVED: Final = frozenset(
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
        "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_CONSTANTS: Final[dict[str, object]] = {"true": True, "false": False, "null": None}
_EXPECTED: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_RELATIONS: Final = ("<", "<=", ">=", ">", "==", "!=")


def parse(source: str) -> Node:
    """The syntax of an expression.

    Raises:
        CompileError: it is no expression.
    """
    parser = _Parser(source, tokenize(source))
    node = parser.expression()
    if parser.current.kind != "end":
        parser.fail(f"Syntax error: mismatched input '{parser.current.text}' expecting <EOF>")
    return node


class _Parser:
    def __init__(self, source: str, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._index = 0
        self._depth = 0

    @property
    def current(self) -> Token:
        return self._tokens[self._index]

    def fail(self, message: str, position: int | None = None) -> None:
        where = self.current.position if position is None else position
        raise CompileError(self._source, [Issue(where, message)])

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.fail(f"expression recursion limit exceeded: {_MAX_DEPTH}")
        condition = self._binary(self._and, ("||",))
        if self._at("?"):
            sign = self._advance()
            then = self._binary(self._and, ("||",))
            self._expect(":")
            condition = Call(sign.position, "_?_:_", None, (condition, then, self.expression()))
        self._depth -= 1
        return condition

    def _and(self) -> Node:
        return self._binary(self._relation, ("&&",))

    def _relation(self) -> Node:
        left = self._sum()
        while self._at(*_RELATIONS) or (self.current.kind == "name" and self.current.text == "in"):
            sign = self._advance()
            function = "@in" if sign.text == "in" else f"_{sign.text}_"
            left = Call(sign.position, function, None, (left, self._sum()))
        return left

    def _sum(self) -> Node:
        return self._binary(self._product, ("+", "-"))

    def _product(self) -> Node:
        return self._binary(self._unary, ("*", "/", "%"))

    def _binary(self, operand: Callable[[], Node], signs: tuple[str, ...]) -> Node:
        left = operand()
        while self._at(*signs):
            sign = self._advance()
            left = Call(sign.position, f"_{sign.text}_", None, (left, operand()))
        return left

    def _unary(self) -> Node:
        if not self._at("!", "-"):
            return self._member()
        first, count = self.current, 0
        while self._at(first.text):
            self._advance()
            count += 1
        if first.text == "-" and self.current.kind in ("int", "float"):
            number = self._advance()
            value: object = -number.value if isinstance(number.value, int | float) else None
            operand = self._members(Literal(first.position, value))
            count -= 1
        else:
            operand = self._member()
        return Call(first.position, f"{first.text}_", None, (operand,)) if count % 2 else operand

    def _member(self) -> Node:
        return self._members(self._primary())

    def _members(self, node: Node) -> Node:
        while self._at(".", "["):
            sign = self._advance()
            optional = self._at("?")
            if optional:
                self._advance()
            if sign.text == "[":
                index = self.expression()
                self._expect("]")
                node = Call(sign.position, "_[?_]" if optional else "_[_]", None, (node, index))
            else:
                node = self._field(node, sign, optional=optional)
        return node

    def _field(self, node: Node, sign: Token, *, optional: bool) -> Node:
        name = self.current
        if name.kind != "name" or name.text in _CONSTANTS or name.text == "in":
            self.fail(f"Syntax error: no viable alternative at input '.{name.text if name.kind != 'end' else ''}'")
        self._advance()
        if optional or not self._at("("):
            return Select(sign.position, node, name.text, optional=optional)
        opening = self._advance()
        arguments = self._arguments(")")
        macro = MEMBER_MACROS.get((name.text, len(arguments)))
        if macro is None:
            return Call(opening.position, name.text, node, arguments)
        return self._expanded(macro, opening.position, node, arguments)

    def _expanded(
        self,
        macro: Callable[[int, Node, tuple[Node, ...]], Node | None],
        position: int,
        node: Node,
        arguments: tuple[Node, ...],
    ) -> Node:
        try:
            expanded = macro(position, node, arguments)
        except MacroError as error:
            raise CompileError(self._source, [Issue(error.position, str(error))]) from error
        assert expanded is not None
        return expanded

    def _primary(self) -> Node:
        token = self.current
        if token.kind in ("text", "bytes", "float", "uint", "int"):
            if token.kind == "int" and isinstance(token.value, int) and token.value > MAX_INT:
                self.fail("invalid int literal")
            return Literal(self._advance().position, token.value)
        if token.kind == "name" and token.text in _CONSTANTS:
            return Literal(self._advance().position, _CONSTANTS[token.text])
        if self._at("."):
            self._advance()
        if self.current.kind == "name" and self.current.text != "in":
            return self._name()
        if self._at("("):
            self._advance()
            node = self.expression()
            self._expect(")")
            return node
        if self._at("["):
            return self._list()
        if self._at("{"):
            return self._map()
        expecting = _EXPECTED
        self.fail(f"Syntax error: mismatched input '{self.current.text}' expecting {expecting}")
        raise AssertionError("fail raises")

    def _name(self) -> Node:
        name = self._advance()
        if name.text in _RESERVED:
            self.fail(f"reserved identifier: {name.text}", name.position)
        if not self._at("("):
            return Ident(name.position, name.text)
        opening = self._advance()
        arguments = self._arguments(")")
        macro = GLOBAL_MACROS.get((name.text, len(arguments)))
        if macro is not None:
            return self._expanded(macro, opening.position, Ident(name.position, name.text), arguments)
        return Call(opening.position, name.text, None, arguments)

    def _list(self) -> Node:
        opening = self._advance()
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._at("]"):
            if self._at("?"):
                self._advance()
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._at(","):
                break
            self._advance()
        self._expect("]")
        return ListOf(opening.position, tuple(elements), frozenset(optional))

    def _map(self) -> Node:
        opening = self._advance()
        entries: list[Entry] = []
        while not self._at("}"):
            optional = self._at("?")
            if optional:
                self._advance()
            key = self.expression()
            self._expect(":")
            entries.append(Entry(key, self.expression(), optional))
            if not self._at(","):
                break
            self._advance()
        self._expect("}")
        return MapOf(opening.position, tuple(entries))

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._at(closing):
            found.append(self.expression())
            if not self._at(","):
                break
            self._advance()
        self._expect(closing)
        return tuple(found)

    def _at(self, *signs: str) -> bool:
        return self.current.kind == "sign" and self.current.text in signs

    def _advance(self) -> Token:
        token = self.current
        self._index += 1
        return token

    def _expect(self, sign: str) -> None:
        if not self._at(sign):
            at_end = self.current.kind == "end"
            problem = (
                f"missing '{sign}' at '<EOF>'"
                if at_end
                else f"extraneous input '{self.current.text}' expecting '{sign}'"
            )
            self.fail(f"Syntax error: {problem}")
        self._advance()
