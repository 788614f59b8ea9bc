"""Parameters that a program does not read, so that all trials of a sweep would be alike."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from trainer.api.optimization import variable_of
from trainer.cli.run.imports import imports_of

_REPORTER: Final = "report"
"""Module whose `parameters()` reads them; a copy beside the script is not the program."""
_READS: Final = "parameters"
_PREFIX: Final = variable_of("")
_LONGEST: Final = 1024 * 1024
"""Bytes of a module that is read; a longer one counts as reading all."""


def unread_parameters(script: Path, arguments: Iterable[str], names: Sequence[str]) -> list[str]:
    """Parameters that neither the arguments of a script nor it and the modules beside it name.

    What cannot be read or parsed here is trusted.

    Args:
        script: its file.
        arguments: with `{lr}` for the value of a parameter.
        names: of the parameters.
    """
    written = " ".join(arguments)
    missing = [name for name in names if f"{{{name}}}" not in written]
    if not missing:
        return []
    try:
        sources = [_source(path) for path in _modules(script)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes and the like
            trees = [ast.parse(source) for source in sources]
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    text = "\n".join(sources)
    if not any(map(_reads_parameters, trees)):
        return missing
    folded = _folded(text)
    return [name for name in missing if _folded(name) not in folded]


def _modules(script: Path) -> Iterator[Path]:
    yield script
    for path in imports_of(script).beside:
        found = path.rglob("*.py") if path.is_dir() else [path]
        yield from (each for each in found if each.is_file() and each.stem != _REPORTER)


def _source(path: Path) -> str:
    content = path.read_bytes()
    if len(content) > _LONGEST:
        raise ValueError(path)
    return content.decode()


def _reads_parameters(tree: ast.AST) -> bool:
    """Whether `parameters()` of the reporter is imported, or variables of parameters are named."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[-1] == _REPORTER:
                if any(each.name in (_READS, "*") for each in names):
                    return True
            case ast.Attribute(attr=attribute, value=ast.Name(id=name)) if (name, attribute) == (_REPORTER, _READS):
                return True
            case ast.Constant(value=str(value)) if value.startswith(_PREFIX):
                return True
    return False


def _folded(text: str) -> str:
    return text.casefold().replace("-", "_").replace(".", "_")
