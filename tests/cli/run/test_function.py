"""A Python function as a script."""

# ruff: noqa: T201 - the functions print what they were given

from __future__ import annotations

import builtins
import functools
import linecache
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.function import function_call

SETTING = 3


def greet(name: str = "you", *, times: int = 1) -> None:
    """A function as people write it."""
    import json

    def line(word: str) -> str:
        return json.dumps([word, name])

    for _ in range(times):
        print(line("hello"))


def show(**values: Any) -> None:
    print(repr(values))


def keep_text() -> None:
    text = """
  two blanks
none"""
    print(repr(text))


def uses_setting(rate: float = 1.0) -> float:
    return rate * SETTING


def default_outside(rate: int = SETTING) -> int:
    return rate


def annotated(path: Path, setting: Callable[[], int] | None = None) -> None:
    print(path)


def imports_itself() -> None:
    from pathlib import Path

    print(Path("a").name)


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@_copied
def wrapped() -> None:
    pass


@functools.cache
def cached() -> None:
    pass


def same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@same
def decorated() -> None:
    pass


async def asynchronous() -> None:
    pass


def generator() -> Iterator[int]:
    yield 1


class Model:
    def fit(self) -> None:
        pass

    @staticmethod
    def fit_all() -> None:
        pass


def uses_builtins() -> None:
    display(input("a"))  # type: ignore[name-defined] # noqa: F821 - IPython has it among the builtins


def closure() -> Callable[[], int]:
    rate, steps = 1, 2
    return lambda: 0 if rate else steps


def nested_with_variable() -> Callable[[], None]:
    rate = 1

    def train() -> None:
        print(rate)

    return train


def run(source: str) -> str:
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("function", "arguments", "printed"),
    [
        pytest.param(greet, {"name": "R2", "times": 2}, '["hello", "R2"]\n' * 2, id="arguments"),
        pytest.param(greet, {}, '["hello", "you"]\n', id="defaults"),
        pytest.param(keep_text, {}, "'\\n  two blanks\\nnone'\n", id="text"),
        pytest.param(annotated, {"path": "a"}, "a\n", id="annotations of what is outside"),
        pytest.param(imports_itself, {}, "a\n", id="an import of what is also outside"),
        pytest.param(
            show,
            {"a": [1, (2,), ()], "b": {"x": None, 3: b"\0"}, "c": set(), "d": frozenset({1}), "e": "'\n\"", "f": True},
            "{'a': [1, (2,), ()], 'b': {'x': None, 3: b'\\x00'}, 'c': set(), 'd': frozenset({1}), 'e': '\\'\\n\"', "
            "'f': True}\n",
            id="containers",
        ),
        pytest.param(show, {"x": -math.inf, "y": 0.1}, "{'x': -inf, 'y': 0.1}\n", id="floats"),
        pytest.param(show, {"class": 1}, "{'class': 1}\n", id="a name that is no identifier"),
    ],
)
def test_script(function: Callable[..., object], arguments: dict[str, object], printed: str) -> None:
    """The script calls the function as it was asked for."""
    call = function_call(function, arguments)

    assert run(call.source) == printed
    assert call.directory == Path(__file__).parent


def test_indented() -> None:
    """A function within another one travels with every line of its texts as it is."""

    def train() -> None:
        print("""\
a
  b""")

    assert run(function_call(train).source) == "a\n  b\n"


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        pytest.param(lambda: 0, "function: a lambda has no source of its own: write it as a function", id="lambda"),
        pytest.param(
            nested_with_variable(),
            "uses variables of the function around it, which do not travel: rate: give them as arguments",
            id="closure",
        ),
        pytest.param(Model().fit, "Model.fit is a method, whose object does not travel", id="method"),
        pytest.param(Model.fit_all, "Model.fit_all belongs to a class", id="static method"),
        pytest.param(Model, "Model is no function that is written in Python", id="class"),
        pytest.param(print, "print is no function that is written in Python", id="builtin"),
        pytest.param(
            functools.partial(greet, "R2"), "give one, and what it needs as arguments=", id="partial"
        ),
        pytest.param(wrapped, "wrapped has decorators, which do not travel", id="wrapper"),
        pytest.param(cached, "cached is no function that is written in Python", id="cache"),
        pytest.param(decorated, "decorated has decorators, which do not travel", id="decorator"),
        pytest.param(asynchronous, "is asynchronous, and nobody would await it: call asyncio.run", id="async"),
        pytest.param(generator, "is a generator, and nobody would ask for its values", id="generator"),
        pytest.param(
            uses_setting,
            "uses what is defined outside of it, which does not travel: SETTING: import or define it in the function, "
            "or give it as an argument",
            id="global",
        ),
        pytest.param(default_outside, "which does not travel: SETTING", id="default"),
    ],
)  # fmt: skip
def test_does_not_travel(function: Callable[..., object], problem: str) -> None:
    """A function that could not run elsewhere is refused, with the remedy."""
    with pytest.raises(BadInputError) as raised:
        function_call(function)
    assert problem in str(raised.value)


def test_names_that_look_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What IPython adds to the builtins, and a global of the name of one, are not on a node."""
    monkeypatch.setattr(builtins, "display", print, raising=False)
    monkeypatch.setitem(globals(), "input", str)
    with pytest.raises(BadInputError, match="which does not travel: display, input: "):
        function_call(uses_builtins)


def test_cell_of_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell, whose source IPython keeps for tracebacks, is as good as a file; modules are looked for where it runs."""
    monkeypatch.chdir(tmp_path)
    cell = "import json\nrate = 1\n\ndef train(steps):\n    print('steps', steps)\n"
    monkeypatch.setitem(linecache.cache, "<ipython-input-1>", (len(cell), None, cell.splitlines(keepends=True), "x"))
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<ipython-input-1>", "exec"), scope)

    call = function_call(scope["train"], {"steps": 2})

    assert run(call.source) == "steps 2\n"
    assert call.directory == tmp_path


def test_without_source() -> None:
    """Nobody can send what was typed into an interpreter."""
    scope: dict[str, Any] = {}
    exec(compile("def typed(): pass", "<typed>", "exec"), scope)
    with pytest.raises(BadInputError, match="typed has no source that can be found: write it in a file, or in a cell"):
        function_call(scope["typed"])


def _shared(levels: int) -> object:
    """Lists of which each has the next one twice."""
    value: object = []
    for _ in range(levels):
        value = [value, value]
    return value


def _nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({"name": object()}, "arguments: name: a object does not travel: give plain values", id="object"),
        pytest.param({"name": [1, {"x": Path()}]}, "arguments: name[1]['x']: a PosixPath does not travel", id="within"),
        pytest.param({"name": _shared(20)}, "arguments: have more than 100000 values", id="shared"),
        pytest.param({"name": 10**5000}, "arguments: name: has more than 8192 bits", id="integer"),
        pytest.param({"name": _nested(60)}, "is nested more than 50 levels deep", id="deep"),
        pytest.param(
            {"nam": 1}, "got an unexpected keyword argument 'nam': it is greet(name='you', *, times=1)", id="unknown"
        ),
        pytest.param({1: 1}, "arguments: 1 is no name of a parameter", id="no text"),
    ],
)  # fmt: skip
def test_bad_argument(arguments: dict[str, object], problem: str) -> None:
    """An argument that cannot be written down is named."""
    with pytest.raises(BadInputError) as raised:
        function_call(greet, arguments)
    assert problem in str(raised.value)
