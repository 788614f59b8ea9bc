"""Options of `trainer run SCRIPT` that are pairs: variables, and variables of Secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trainer.api import patterns
from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.kube.objects import Object

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""What shells and Python accept; Kubernetes allows more."""
_EXPANDED = re.compile(r"\${2,}|\$(?=\()")
_SECRET = re.compile(r"(?P<secret>[^:]+):(?P<key>[-._a-zA-Z0-9]+)")


def literal(text: str) -> str:
    """A word of a command or a value of a variable, escaped so that a container gets it unchanged.

    In both, Kubernetes replaces `$(NAME)` by a variable, and `$$` by `$`.
    """
    return _EXPANDED.sub(lambda found: found[0] * 2, text)


def check_text(option: str, text: str, *, shown: str) -> None:
    """Refuse what no API object can hold: bytes that are no UTF-8, which Python reads as lone surrogates.

    Raises:
        BadInputError: without the text, which may be secret.
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise BadInputError(f"{option}: {shown} must be text in UTF-8")


def environment(plain: Iterable[str], of_secrets: Iterable[str], own: Mapping[str, str]) -> list[Object]:
    """The variables of `--env` and `--secret-env`, for `spec.trainer.env`.

    Args:
        plain: each `NAME=VALUE`, or `NAME` for the value that it has here.
        of_secrets: each `NAME=SECRET:KEY`.
        own: the environment of this process.

    Raises:
        BadInputError: one of them is wrong; values are never part of the message.
    """
    variables: dict[str, Object] = {}
    for item in plain:
        name, separator, value = item.partition("=")
        _check_name("--env", name, "NAME=VALUE, or NAME for a variable that is set here")
        if not separator and name not in own:
            raise BadInputError(f"--env: {name} is not set here: write {name}=VALUE")
        text = value if separator else own[name]
        check_text("--env", text, shown=f"the value of {name}")
        _add(variables, "--env", {"name": name, "value": literal(text)})
    for item in of_secrets:
        name, _, reference = item.partition("=")
        _check_name("--secret-env", name, "NAME=SECRET:KEY")
        found = _SECRET.fullmatch(reference)
        if found is None or not patterns.compiled(patterns.OBJECT_NAME).search(found["secret"]):
            raise BadInputError(
                f"--secret-env: {name}: must be {name}=SECRET:KEY, the name of a Secret and a key of it"
            )
        source = {"secretKeyRef": {"name": found["secret"], "key": found["key"]}}
        _add(variables, "--secret-env", {"name": name, "valueFrom": source})
    return list(variables.values())


def _check_name(option: str, name: str, form: str) -> None:
    if not _NAME.fullmatch(name):
        shown = printable(name)[:64]
        raise BadInputError(f"{option}: {shown or 'the name'}: must be {form}; names have letters, digits and _")


def _add(variables: dict[str, Object], option: str, variable: Object) -> None:
    name = variable["name"]
    if name in variables:
        raise BadInputError(f"{option}: {name} is given twice")
    variables[name] = variable
