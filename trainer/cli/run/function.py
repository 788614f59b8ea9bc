"""A Python function as a script that calls it with its arguments."""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import math
import symtable
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import NoReturn

from trainer.cli.console import printable
from trainer.cli.errors import BadInputError

_DEEPEST = 50
"""Levels of containers within an argument."""
_MOST = 100_000
"""Values in all arguments."""
_LONGEST_INTEGER = 8192
"""Bits; Python refuses to write more than 4,300 digits."""
_PLAIN_VALUES = "None, bool, int, float, str, bytes, and lists, tuples, sets and dicts of them"
_OF_NOTEBOOKS = frozenset({"display", "get_ipython"})
"""What IPython adds to the builtins."""
_BUILTINS: Mapping[str, object] = {name: each for name, each in vars(builtins).items() if name not in _OF_NOTEBOOKS}
_NOTHING: Mapping[str, object] = MappingProxyType({})
_NOTHING_WRITTEN: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function that a training runs."""

    name: str
    source: str
    """The script that defines the function and calls it, if it is not imported."""
    directory: Path
    """Where modules are that it imports from beside it: the folder of its file, of a notebook the current one."""
    packages: tuple[str, ...] = ()
    """Lines of a requirements.txt."""

    @property
    def script(self) -> str:
        """The name of the script, which hides no module that the function imports."""
        return f"{self.name}_function.py"


def function_call(
    function: Callable[..., object],
    arguments: Mapping[str, object] = _NOTHING,
    packages: tuple[str, ...] = (),
    *,
    expressions: Mapping[str, str] = _NOTHING_WRITTEN,
) -> FunctionCall:
    """The call of a function by its source.

    Args:
        function: to call.
        arguments: by name. Default: none.
        packages: lines of a requirements.txt. Default: none.
        expressions: source of further arguments, which a node evaluates. Default: none.

    Raises:
        BadInputError: the source alone would not run elsewhere, or an argument is no plain value; names the remedy.
    """
    plain = _plain_function(function)
    name = plain.__name__
    if twice := [key for key in expressions if key in arguments]:
        raise BadInputError(f"arguments: {printable(twice[0])} is a parameter of the sweep as well: leave it out")
    _check_arguments(plain, {**arguments, **expressions})
    if _is_large(arguments):
        raise BadInputError(f"arguments: have more than {_MOST} values: read them from a file in the function")
    written = {key: _literal(f"arguments: {key}", value) for key, value in arguments.items()} | dict(expressions)
    if all(key.isidentifier() and not keyword.iskeyword(key) for key in written):
        call = ", ".join(f"{key}={value}" for key, value in written.items())
    else:
        call = f"**{{{', '.join(f'{key!r}: {value}' for key, value in written.items())}}}"
    definition = _definition(plain)
    source = f'from __future__ import annotations\n\n\n{definition}\n\nif __name__ == "__main__":\n    {name}({call})\n'
    _check_names(plain, source)
    return FunctionCall(name, source, _directory(plain), packages)


def _plain_function(function: Callable[..., object]) -> FunctionType:
    if inspect.ismethod(function):
        _refuse(function.__qualname__, "is a method, whose object does not travel: write a function that makes it")
    if not isinstance(function, FunctionType):
        what = getattr(function, "__qualname__", None) or type(function).__name__
        _refuse(what, "is no function that is written in Python with def: give one, and what it needs as arguments=")
    name = function.__qualname__
    if function.__name__ == "<lambda>":
        _refuse("a lambda", "has no source of its own: write it as a function with def")
    if hasattr(function, "__wrapped__"):
        _refuse_decorators(function.__name__)
    if function.__code__.co_freevars:
        names = ", ".join(function.__code__.co_freevars)
        _refuse(name, f"uses variables of the function around it, which do not travel: {names}: give them as arguments")
    if "." in name and not name.rpartition(".")[0].endswith("<locals>"):
        _refuse(name, "belongs to a class, which does not travel: write a function outside of it")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        _refuse(name, "is asynchronous, and nobody would await it: call asyncio.run in a function with plain def")
    if inspect.isgeneratorfunction(function):
        _refuse(name, "is a generator, and nobody would ask for its values: call it in a function without yield")
    return function


def _definition(function: FunctionType) -> str:
    """The source; below `if True:` where it is indented, because other lines of a text in it must stay as they are."""
    name = function.__name__
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError, SyntaxError):
        _refuse(name, "has no source that can be found: write it in a file, or in a cell of a notebook")
    is_indented = text[:1] in {" ", "\t"}
    source = f"if True:\n{text}" if is_indented else text
    try:
        (statement,) = ast.parse(source).body
    except (SyntaxError, ValueError):
        _refuse(name, "cannot be read apart from what is around it: define it at the beginning of a line")
    if isinstance(statement, ast.If):
        statement = statement.body[0]
    if not isinstance(statement, ast.FunctionDef) or statement.name != name:
        _refuse(name, "is not what its source says: define it again with def, under its own name")
    if statement.decorator_list:
        _refuse_decorators(name)
    return source


def _refuse_decorators(name: str) -> NoReturn:
    _refuse(name, "has decorators, which do not travel: write a function without any that applies them")


def _check_names(function: FunctionType, source: str) -> None:
    """Refuse what the function uses from around it: it is not there on a node."""
    top = symtable.symtable(source, function.__name__, "exec")
    used = dict.fromkeys(name for name in _globals(top) if name != function.__name__)
    around = vars(builtins) | function.__globals__
    lost = [name for name in used if around.get(name) is not _BUILTINS.get(name) and not name.startswith("__")]
    if lost:
        _refuse(
            function.__name__,
            f"uses what is defined outside of it, which does not travel: {', '.join(sorted(lost))}: import or define "
            "it in the function, or give it as an argument",
        )


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """Names of the module that are used in it, and that it does not define."""
    defined = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}

    def walk(scope: symtable.SymbolTable) -> Iterator[str]:
        if scope.get_type() not in {"function", "class", "module"}:  # annotations, which nobody evaluates
            return
        for symbol in scope.get_symbols():
            if scope is table or symbol.is_global():
                if symbol.is_declared_global() and symbol.is_assigned():
                    defined.add(symbol.get_name())
                if symbol.is_referenced():
                    yield symbol.get_name()
        for child in scope.get_children():
            yield from walk(child)

    yield from [name for name in list(walk(table)) if name not in defined]


def _directory(function: FunctionType) -> Path:
    file = Path(function.__code__.co_filename)
    return file.resolve().parent if file.is_file() else Path.cwd()


def _check_arguments(function: FunctionType, arguments: Mapping[str, object]) -> None:
    for key in arguments:
        if not isinstance(key, str):
            raise BadInputError(f"arguments: {printable(repr(key))} is no name of a parameter: names are texts")
    signature = inspect.signature(function)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
        takes = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
        raise BadInputError(f"arguments: {error}: it is {function.__name__}{printable(str(takes))}") from None


def _is_large(arguments: Mapping[str, object]) -> bool:
    """Whether there are more than `_MOST` values, those of shared lists counted each time."""
    waiting, count = list[object](arguments.values()), 0
    while waiting and count <= _MOST:
        count += 1
        match waiting.pop():
            case dict() as each:
                waiting += [*each.keys(), *each.values()]
            case (list() | tuple() | set() | frozenset()) as each:
                waiting += each
    return count > _MOST


def _literal(where: str, value: object, depth: int = 0) -> str:
    """Python source of a plain value."""
    if depth > _DEEPEST:
        raise BadInputError(f"{where}: is nested more than {_DEEPEST} levels deep: read it from a file in the function")
    if value is None or isinstance(value, bool | bytes):
        return repr(value)
    if type(value) is int and value.bit_length() > _LONGEST_INTEGER:
        raise BadInputError(f"{where}: has more than {_LONGEST_INTEGER} bits: give it as text")
    if type(value) in {int, str}:
        return repr(value)
    if isinstance(value, float):  # also those of numpy
        return repr(float(value)) if math.isfinite(value) else f'float("{float(value)}")'
    if isinstance(value, Mapping) and type(value) is dict:
        pairs = (
            f"{_literal(f'{where}: a key', key, depth + 1)}: {_literal(f'{where}[{key!r}]', each, depth + 1)}"
            for key, each in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    if type(value) in {list, tuple, set, frozenset} and isinstance(value, list | tuple | set | frozenset):
        each = [_literal(f"{where}[{index}]", item, depth + 1) for index, item in enumerate(value)]
        inner = ", ".join(each)
        match value:
            case list():
                return f"[{inner}]"
            case tuple():
                return f"({inner},)" if each else "()"
            case set():
                return f"{{{inner}}}" if each else "set()"
            case _:
                return f"frozenset([{inner}])"
    raise BadInputError(
        f"{printable(where)}: a {type(value).__name__} does not travel: give plain values ({_PLAIN_VALUES}), or make "
        "or read it in the function"
    )


def _refuse(what: str, why: str) -> NoReturn:
    raise BadInputError(f"function: {printable(what)} {why}")
