"""Cost: what evaluating an expression may take, estimated before anybody has sent a value.

Sources: the cost model of github.com/google/cel-go, with the figures of API servers since 1.33, where `has` is free.
What counts is the worst case, so sizes that nobody bounds are as large as a number can be. Macros cost what the loops
cost that they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trainer_devcluster.apiserver.cel.call_costs import (
    ONE,
    PATH_OF_INDEXES,
    PATH_OF_ITEMS,
    PATH_OF_KEYS,
    PATH_OF_VALUES,
    Operand,
    Path,
    cost_of_call,
)
from trainer_devcluster.apiserver.cel.ranges import UNKNOWN, Range, exactly
from trainer_devcluster.apiserver.cel.syntax import (
    Bind,
    Call,
    Comprehension,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
)

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.call_costs import SizeOf
    from trainer_devcluster.apiserver.cel.checker import Checked
    from trainer_devcluster.apiserver.cel.types import Type

_FREE: Final = exactly(0)
_NEW_LIST: Final = exactly(10)
_NEW_MAP: Final = exactly(30)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_SELECTED_FREELY: Final = frozenset({"dyn", "optional_type"})
"""Types of operands whose fields cost nothing beyond the operand."""


@dataclass(frozen=True, slots=True)
class _Entries:
    """Sizes of the items of a list, or of the keys and values of a map."""

    is_list: bool
    key: Range
    value: Range

    def __or__(self, other: _Entries) -> _Entries:
        return _Entries(self.is_list, self.key | other.key, self.value | other.value)


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable that a macro introduces."""

    type: Type | None
    path: Path
    size: Range | None
    entries: _Entries | None = None


def estimate_cost(node: Node, checked: Checked, size_of: SizeOf) -> Range:
    """The least and the most that an expression can cost.

    Args:
        node: its syntax.
        checked: what the checker has found out about it.
        size_of: how large the variables and what is in them may be.
    """
    return _Coster(checked, size_of).visit(node)


@dataclass(slots=True)
class _Coster:
    checked: Checked
    size_of: SizeOf
    paths: dict[int, Path] = field(default_factory=dict)
    sizes: dict[int, Range] = field(default_factory=dict)
    entries: dict[int, _Entries] = field(default_factory=dict)
    locals: dict[str, list[_Local]] = field(default_factory=dict)

    def visit(self, node: Node) -> Range:
        match node:
            case Literal():
                return _FREE
            case Ident():
                local = self._local(node)
                self.paths[id(node)] = (node.name,) if local is None else local.path
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                return self._bind(node)

    def _select(self, node: Select) -> Range:
        name = self.checked.names.get(id(node))
        if name is not None:
            self.paths[id(node)] = (name,)
            return ONE
        cost = self.visit(node.operand)
        if node.test:
            return cost
        if node.optional:
            return cost + ONE
        self.paths[id(node)] = (*self._path(node.operand), node.field)
        operand = self._type(node.operand)
        return cost if operand is None or operand.name in _SELECTED_FREELY else cost + ONE

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.visit(node.arguments[0]) + ONE
            self._copy(node, node.arguments[0])
            return cost
        costs = [self.visit(argument) for argument in node.arguments]
        if node.function in ("_&&_", "_||_"):
            return Range(costs[0].least, (costs[0] + costs[1]).most)
        if node.function == "_?_:_":
            return self._conditional(node, costs)
        total = _sum(costs)
        arguments = [self._operand(argument) for argument in node.arguments]
        target, name = None, self.checked.qualified.get(node.position, node.function)
        if node.target is not None and node.position not in self.checked.qualified:
            total += self.visit(node.target)
            target = self._operand(node.target)
        estimates = [cost_of_call(name, each, target, arguments) for each in self.checked.overloads[id(node)]]
        sizes = [estimate.size for estimate in estimates if estimate.size is not None]
        if sizes:
            self.sizes[id(node)] = _union(sizes)
        self._track(node, name)
        return total + _union([estimate.cost for estimate in estimates])

    def _conditional(self, node: Call, costs: list[Range]) -> Range:
        _, chosen, other = node.arguments
        self.sizes[id(node)] = (self._size(chosen) or UNKNOWN) | (self._size(other) or UNKNOWN)
        self._unite_entries(node, chosen, other)
        return costs[0] + (costs[1] | costs[2])

    def _track(self, node: Call, name: str) -> None:
        """Note what is known about the value of an index or a sum."""
        if name == "_+_":
            self._unite_entries(node, *node.arguments)
        if name != "_[_]":
            return
        operand = node.arguments[0]
        steps = {"list": PATH_OF_ITEMS, "map": PATH_OF_VALUES}
        for overload in self.checked.overloads[id(node)]:
            step = steps.get(overload.parameters[0].name)
            if step is not None:
                self.paths[id(node)] = (*self._path(operand), step)
                entries = self._entries_of(operand)
                if entries is not None:
                    self.sizes[id(node)] = entries.value

    def _list(self, node: ListOf) -> Range:
        cost = _sum([self.visit(element) for element in node.elements])
        sizes = [self._size(element) or UNKNOWN for element in node.elements]
        self.entries[id(node)] = _Entries(True, ONE, _union(sizes) if sizes else _FREE)
        return cost + _NEW_LIST

    def _map(self, node: MapOf) -> Range:
        cost = _sum([self.visit(part) for entry in node.entries for part in (entry.key, entry.value)])
        keys = [self._size(entry.key) or UNKNOWN for entry in node.entries]
        values = [self._size(entry.value) or UNKNOWN for entry in node.entries]
        self.entries[id(node)] = _Entries(False, _union(keys) if keys else _FREE, _union(values) if values else _FREE)
        return cost + _NEW_MAP

    def _comprehension(self, node: Comprehension) -> Range:
        cost = self.visit(node.range)
        variables = self._iteration(node)
        for name, local in variables.items():
            self.locals.setdefault(name, []).append(local)
        predicate = None if node.predicate is None else self.visit(node.predicate)
        result = None if node.result is None else self.visit(node.result)
        made = self._made(node, variables)
        for name in variables:
            self.locals[name].pop()
        count = self._size(node.range) or UNKNOWN
        start, step, end = _loop(node.macro, predicate, result)
        is_collection = node.macro not in ("all", "exists", "existsOne")
        self.sizes[id(node)] = count if is_collection else ONE
        if made is not None:
            self.entries[id(node)] = made
        return cost + start + end + count * step

    def _iteration(self, node: Comprehension) -> dict[str, _Local]:
        """The variables of a loop."""
        entries, path, source = self._entries_of(node.range), self._path(node.range), self._type(node.range)
        is_list = entries.is_list if entries is not None else source is not None and source.name == "list"
        parameters = () if source is None else source.parameters
        values = _Local(
            parameters[-1] if parameters else None,
            (*path, PATH_OF_ITEMS if is_list else PATH_OF_VALUES),
            None if entries is None else entries.value,
        )
        keys = _Local(
            None if is_list or not parameters else parameters[0],
            (*path, PATH_OF_INDEXES if is_list else PATH_OF_KEYS),
            None if entries is None else entries.key,
        )
        if len(node.variables) == 2:
            return dict(zip(node.variables, (keys, values), strict=True))
        return {node.variables[0]: values if is_list else keys}

    def _made(self, node: Comprehension, variables: dict[str, _Local]) -> _Entries | None:
        """Sizes of the items of the list that a loop makes; None when it makes none."""
        if node.macro in ("map", "transformList") and node.result is not None:
            size = self._size(node.result)
        elif node.macro == "filter":
            local = variables[node.variables[0]]
            size = self._sized_by_path(local.path) or _scalar_size(local.type) or local.size
        else:
            return None
        return _Entries(True, ONE, (size or UNKNOWN) | _FREE)

    def _bind(self, node: Bind) -> Range:
        if not node.optional:
            value = self.visit(node.value)
            local = _Local(
                self._type(node.value), self._path(node.value), self._size(node.value), self._entries_of(node.value)
            )
        else:
            # It is asked whether there is a value, and the value is read: both go through the target.
            value = self.visit(node.value) + ONE
            wrapped = self._type(node.value)
            inner = wrapped.parameters[0] if wrapped is not None and wrapped.parameters else None
            local = _Local(inner, (), _scalar_size(inner))
        self.locals.setdefault(node.name, []).append(local)
        bound = _NEW_LIST + value + self.visit(node.body)
        self.locals[node.name].pop()
        if not node.optional:
            self._copy(node, node.body)
            return bound
        if node.optional == "map":
            bound += ONE
        return value + (bound | ONE)

    def _operand(self, node: Node) -> Operand:
        found = self._type(node)
        assert found is not None
        return Operand(node, found, self._path(node), self._size(node) or UNKNOWN, self.size_of)

    def _type(self, node: Node) -> Type | None:
        return self.checked.types.get(id(node))

    def _path(self, node: Node) -> Path:
        return self.paths.get(id(node), ())

    def _local(self, node: Node) -> _Local | None:
        stack = self.locals.get(node.name) if isinstance(node, Ident) else None
        return stack[-1] if stack else None

    def _size(self, node: Node) -> Range | None:
        known = self.sizes.get(id(node))
        if known is None:
            known = _size_of_syntax(node) or self._sized_by_path(self._path(node)) or _scalar_size(self._type(node))
        if known is None:
            local = self._local(node)
            known = None if local is None else local.size
        return known

    def _sized_by_path(self, path: Path) -> Range | None:
        largest = self.size_of(path) if path else None
        return None if largest is None else Range(0, largest)

    def _entries_of(self, node: Node) -> _Entries | None:
        known = self.entries.get(id(node))
        local = self._local(node)
        return local.entries if known is None and local is not None else known

    def _unite_entries(self, node: Node, *others: Node) -> None:
        known = [self._entries_of(other) for other in others]
        first, second = known
        if first is not None and second is not None:
            self.entries[id(node)] = first | second

    def _copy(self, node: Node, other: Node) -> None:
        size, entries = self._size(other), self._entries_of(other)
        if size is not None:
            self.sizes[id(node)] = size
        if entries is not None:
            self.entries[id(node)] = entries


def _loop(macro: str, predicate: Range | None, result: Range | None) -> tuple[Range, Range, Range]:
    """Costs of the start, of each step with its condition, and of the end of the loop that a macro stands for."""
    condition, made = predicate or _FREE, result or _FREE
    if macro in ("all", "exists"):
        # The condition of the loop looks at what has been found so far, `exists` at the opposite of it.
        again = exactly(2 if macro == "all" else 3)
        return _FREE, again + Range(1, (ONE + condition).most), ONE
    if macro == "existsOne":
        return _FREE, condition + Range(1, 2), exactly(2)
    if macro.startswith("transformMap"):
        start, step = _NEW_MAP, made + exactly(2 if macro == "transformMapEntry" else 3)
    else:
        # One list with one item is made in each step and appended to the others; `filter` names the item once more.
        start, step = _NEW_LIST, (ONE if macro == "filter" else made) + exactly(12)
    return start, step if predicate is None else condition + (step | ONE), ONE


def _sum(costs: list[Range]) -> Range:
    total = _FREE
    for cost in costs:
        total += cost
    return total


def _union(ranges: list[Range]) -> Range:
    together = ranges[0]
    for each in ranges[1:]:
        together |= each
    return together


def _size_of_syntax(node: Node) -> Range | None:
    match node:
        case Literal(value=str() | bytes() as text):
            return exactly(len(text))
        case Literal():
            return ONE
        case ListOf():
            return exactly(len(node.elements))
        case MapOf():
            return exactly(len(node.entries))
    return None


def _scalar_size(found: Type | None) -> Range | None:
    while found is not None and found.name == "optional_type":
        found = found.parameters[0]
    return ONE if found is not None and found.name in _SCALARS else None
