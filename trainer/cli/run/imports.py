"""What a Python script imports, and which of it stands beside the script."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*(?:\.\w+)*)", re.MULTILINE)
"""A statement of a script that cannot be parsed, such as one for a newer Python."""
_LONGEST = 8 * 1024 * 1024
"""Bytes of a module that is read; no person has written a longer one."""


@dataclass(slots=True)
class Imports:
    """What a script and the modules beside it import."""

    modules: set[str] = field(default_factory=set)
    """First words of the names of all other modules, such as `torch`."""
    beside: set[Path] = field(default_factory=set)
    """Modules and packages beside the script: files and folders."""
    syntax_error: str = ""
    """Why the script itself could not be parsed; then its imports are guessed line by line."""
    is_binary: bool = False
    """Whether the script has zero bytes, with which no Python reads it."""


def imports_of(script: Path) -> Imports:
    """Read a script and the modules beside it that it imports, however indirectly; nothing is imported.

    Raises:
        OSError: the script cannot be read.
    """
    return imports_in(script.read_bytes()[:_LONGEST], script.parent, script)


def imports_in(source: bytes, directory: Path, script: Path | None = None) -> Imports:
    """Like `imports_of`, for the source of a script, which need not be a file.

    Args:
        source: of the script.
        directory: where the modules beside it are.
        script: its file, which is no module beside it. Default: it is none.

    Raises:
        OSError: a module beside it cannot be read.
    """
    found = Imports()
    names, found.syntax_error = _names(source)
    found.is_binary = b"\0" in source
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        own = _beside(directory, name)
        if own is None or own == script:
            found.modules.add(name)
            continue
        found.beside.add(own)
        for module in sorted(own.rglob("*.py")) if own.is_dir() else [own]:
            if module.is_file():
                waiting += _names(module.read_bytes()[:_LONGEST])[0]
    return found


def _beside(directory: Path, name: str) -> Path | None:
    package, module = directory / name, directory / f"{name}.py"
    if package.is_dir() and any(package.glob("*.py")):
        return package
    return module if module.is_file() else None


def _names(source: bytes) -> tuple[set[str], str]:
    """First words of the imported modules, and why the source could not be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes and the like
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) and error.lineno else str(error)
        return {name.decode().partition(".")[0] for name in _IMPORT.findall(source)}, line or type(error).__name__
    return set(_imported(tree)), ""


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
