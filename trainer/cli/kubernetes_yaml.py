"""YAML as Kubernetes reads and writes it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.kube.objects import Object


class YamlError(ValueError):
    """A text is not YAML; the message says what is wrong."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where
        """Where in the text, such as `line 3, column 7`; "" when that is not known."""


class _Loader(yaml.SafeLoader):
    """Reads YAML as Kubernetes does: a timestamp is a string; and refuses what JSON cannot say, and repeated keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base class declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
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
                problem = f"the key {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Writes what every YAML reader takes for the same: no aliases, no folded lines, texts like numbers in quotes."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
# YAML 1.2 and Go take more for numbers and truth values than this library.
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|0o[0-7]+$"), list("+-.0123456789")
)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))


def parse(text: str) -> Iterator[object]:
    """The documents of a text; None for an empty one.

    Raises:
        YamlError: it is not YAML, or says what JSON cannot; the documents before that have been yielded.
    """
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise YamlError(f"not valid YAML: {error.problem or error.context}", where) from None
    except yaml.YAMLError as error:
        raise YamlError(f"not valid YAML: {error}") from None


def dump(obj: Object) -> str:
    """An object as one document, in block style, with sorted keys as kubectl prints them."""
    return yaml.dump(obj, Dumper=_Dumper, sort_keys=True, default_flow_style=False, allow_unicode=True, width=math.inf)


def join(documents: Iterable[str]) -> str:
    """Documents as one stream."""
    return "---\n".join(documents)
