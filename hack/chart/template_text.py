"""Helm templates as text: YAML of objects in which some values are expressions."""

from __future__ import annotations

import re
from typing import Any

import yaml

from trainer.kube.objects import Object

_STAND_IN = r"HELM-\d{4}-"
_SPLICE = "SPLICE"


class Expressions:
    """Stand-ins for expressions, which YAML can carry, and the text in which they are what they stand for."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def value(self, text: str) -> str:
        """A value, or part of a string, that is the result of an expression."""
        self._texts.append(text)
        return f"HELM-{len(self._texts) - 1:04}-"

    def json(self, path: str) -> str:
        """A value that is a list or mapping of the values."""
        return self.value(f"{{{{ toJson {path} }}}}")

    def extend(self, mapping: Object, path: str) -> None:
        """Add the entries of a mapping of the values to a mapping, or nothing where it is empty."""
        mapping[f"{self.value(path)}{_SPLICE}"] = None

    def extended(self, items: list[Any], path: str) -> list[Any]:
        """A list with the items of a list of the values at its end."""
        return [*items, f"{self.value(path)}{_SPLICE}"]

    def block(self, text: str) -> str:
        """A string of several lines, the result of an expression."""
        return f"{self.value(text)}BLOCK"

    def text(self, *objects: Object) -> str:
        """The objects as a template: documents of YAML.

        Raises:
            ValueError: Helm would take something in them for an expression.
        """
        text = "---\n".join(map(_dump, objects))
        if "{{" in text:
            raise ValueError("there are braces that Helm would take for an expression")
        return self._filled(text)

    def _filled(self, text: str) -> str:
        text = re.sub(rf"^( *)(- )?({_STAND_IN}){_SPLICE}(: null)?$", self._splice, text, flags=re.MULTILINE)
        text = re.sub(rf"^( *)(.*: )({_STAND_IN})BLOCK$", self._block, text, flags=re.MULTILINE)
        return re.sub(_STAND_IN, lambda match: self._of(match[0]), text)

    def _splice(self, match: re.Match[str]) -> str:
        indent = match[1]
        return (
            f"{indent}{{{{- with {self._of(match[3])} }}}}\n"
            f"{indent}{{{{- toYaml . | nindent {len(indent)} }}}}\n"
            f"{indent}{{{{- end }}}}"
        )

    def _block(self, match: re.Match[str]) -> str:
        indent = len(match[1]) + 2
        return f"{match[1]}{match[2]}|\n{' ' * indent}{{{{- {self._of(match[3])} | nindent {indent} }}}}"

    def _of(self, token: str) -> str:
        return self._texts[int(token[5:9])]


def _dump(obj: Object) -> str:
    return yaml.dump(obj, Dumper=_Dumper, sort_keys=False, width=10_000)


def define(name: str, text: str) -> str:
    """A named template."""
    return f'{{{{- define "{name}" }}}}\n{text}{{{{- end }}}}\n'


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 the signature is PyYAML's
        return True
