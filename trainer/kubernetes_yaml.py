"""YAML as Kubernetes reads and writes it."""

from __future__ import annotations

import math
import re
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

try:
    from yaml.cyaml import CParser as _Parser  # type: ignore[attr-defined] # of the types alone
except ImportError:  # a PyYAML that was built without libyaml
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Parser(Reader, Scanner, Parser):  # type: ignore[no-redef]
        """Reads events in Python, which takes a few times as long."""

        def __init__(self, text: str) -> None:
            Reader.__init__(self, text)
            Scanner.__init__(self)
            Parser.__init__(self)


from collections.abc import Iterable, Iterator

from trainer.kube.objects import Object


class YamlError(ValueError):
    """A text is not YAML; the message says what is wrong."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where
        """Where in the text, such as `line 3, column 7`; "" when that is not known."""


_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_BOOLEAN = "tag:yaml.org,2002:bool"
_TEXTS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "value", "int", "float"))
"""What this library sees in a plain word and Kubernetes does not, or not in the same words."""


class _Loader(Composer, _Parser, SafeConstructor, Resolver):
    """Reads YAML as Kubernetes does: a timestamp is a string, so is 1:30, which others take for 90, and y is true.

    It refuses what JSON cannot say, and repeated keys. The text is scanned in C, which takes a fifth of the time; nodes
    are composed in Python, since libyaml's binding recurses on the stack of C, which a nested text would overflow.
    """

    def __init__(self, text: str) -> None:
        _Parser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base class declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXTS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    yaml_constructors = {  # noqa: RUF012 - as its base class declares it
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if tag not in {f"tag:yaml.org,2002:{name}" for name in ("binary", "omap", "pairs", "set", "timestamp")}
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ARG002
        # Only at once does the loader notice an alias to something that contains it.
        return super().construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a string", key.start_mark)
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                problem = f"the key {key.value!r} is defined twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _TreeLoader(_Loader):
    """Refuses aliases, by which a short text can stand for a huge object."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "an alias is not allowed here", None)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def _read_integer(_loader: _Loader, node: yaml.ScalarNode) -> int:
    digits = node.value.replace("_", "")
    if len(digits) > _LONGEST_NUMBER:
        raise yaml.constructor.ConstructorError(None, None, "a number has too many digits", node.start_mark)
    return int(digits, 8 if re.fullmatch(r"[-+]?0[0-7]+", digits) else 0)


def _read_float(_loader: _Loader, node: yaml.ScalarNode) -> int | float:
    """A whole number is an integer, however it is written: JSON has one kind of number."""
    try:
        value = float(node.value.replace("_", ""))
    except ValueError:  # .inf and .nan
        value = math.nan
    if not math.isfinite(value):
        problem = f"{node.value} is a number that JSON cannot say"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return int(value) if value.is_integer() and abs(value) < _LONGEST_WHOLE else value


_LONGEST_NUMBER = 1000
"""Characters; no field takes more than 20, and this library gives up at some thousands."""

_LONGEST_WHOLE = 1e21
"""From here on Go writes whole numbers with an exponent."""

_Loader.add_implicit_resolver(
    _INTEGER,
    re.compile(r"[-+]?(0b[01_]*[01]|0o?[0-7_]*[0-7]|0x[0-9a-fA-F_]*[0-9a-fA-F]|0|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
    ),
    list("-+.0123456789"),
)
_Loader.add_implicit_resolver(_BOOLEAN, re.compile(r"[yYnN]$"), list("yYnN"))
_Loader.bool_values = yaml.SafeLoader.bool_values | {"y": True, "n": False}
_Loader.yaml_constructors |= {_INTEGER: _read_integer, _FLOAT: _read_float}


class _Dumper(yaml.SafeDumper):
    """Writes what every YAML reader takes for the same: no aliases, no folded lines, texts like numbers in quotes."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_RARE_BREAKS = frozenset("\r\x85\u2028\u2029")
"""Line breaks that only escapes bring back as they were."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if not _RARE_BREAKS.isdisjoint(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
# YAML 1.2 and Go take more for numbers and truth values than this library.
_Dumper.add_implicit_resolver(
    _FLOAT, re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$|0o[0-7]+$"), list("+-.0123456789")
)
_Dumper.add_implicit_resolver(_BOOLEAN, re.compile(r"[yYnN]$"), list("yYnN"))

_TOO_DEEP = "not valid YAML: it is nested too deeply"
_DEPTH = "exceeded maximum nesting depth"
"""What libyaml says of it since PyYAML 6.0.4; otherwise Python's stack ends."""


def parse(text: str, *, aliases: bool = True) -> Iterator[object]:
    """The documents of a text, in time that is linear in its length; None for an empty one.

    Raises:
        YamlError: it is not YAML, or says what JSON cannot; the documents before that have been yielded.
    """
    try:
        loader = _Loader(text) if aliases else _TreeLoader(text)
        while loader.check_node():
            yield loader.get_data()
    except yaml.MarkedYAMLError as error:
        problem = str(error.problem or error.context)
        if problem == _DEPTH:
            raise YamlError(_TOO_DEEP) from None
        where = _place(error.problem_mark, text) if error.problem_mark else ""
        raise YamlError(f"not valid YAML: {problem}", where) from None
    except yaml.YAMLError as error:
        raise YamlError(f"not valid YAML: {' '.join(str(error).split())}") from None
    except UnicodeEncodeError as error:
        raise YamlError(f"not valid YAML: character {error.start + 1} is half of one, which is no text") from None
    except RecursionError:
        raise YamlError(_TOO_DEEP) from None


def compose(text: str) -> yaml.Node | None:
    """The nodes of a text of one document that is known to be YAML, with their places."""
    return _Loader(text).get_single_node()


def _place(mark: yaml.Mark, text: str) -> str:
    """Where a mark is, in the words of editors; libyaml places the end of a text in a line of its own."""
    line, column = mark.line, mark.column
    if line > (last := text.count("\n")):
        line, column = last, len(text) - text.rfind("\n") - 1
    return f"line {line + 1}, column {column + 1}"


def dump(obj: Object) -> str:
    """An object as one document, in block style, with sorted keys as kubectl prints them."""
    return yaml.dump(obj, Dumper=_Dumper, sort_keys=True, default_flow_style=False, allow_unicode=True, width=math.inf)


def join(documents: Iterable[str]) -> str:
    """Documents as one stream."""
    return "---\n".join(documents)
