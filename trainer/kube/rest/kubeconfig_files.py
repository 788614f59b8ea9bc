"""Kubeconfig files, merged as kubectl does: of two entries of the same name the one of the earlier file counts.

`rest.kubeconfig` says why not by kubernetes-asyncio.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KINDS = ("cluster", "context", "user")
"""What is named; the lists have an s at the end."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster, context or user."""

    file: Path
    """The file that it is in, to which its paths are relative."""
    values: dict[str, Any]
    """`name`, and the rest under the kind."""

    @property
    def name(self) -> Any:
        """Its name, which must not be trusted to be a string."""
        return self.values.get("name")


@dataclass(slots=True)
class Merged:
    """What several files say together."""

    entries: dict[str, list[Entry]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    """By kind."""
    current_context: str | None = None
    """That of the first file that has one."""


def read_files(paths: Iterable[Path]) -> Merged:
    """Read those of the files that exist; it blocks.

    Raises:
        OSError, UnicodeDecodeError, yaml.YAMLError: a file cannot be read.
        TypeError: a file is no mapping, or its entries are not.
        KeyError: an entry has no name.
    """
    merged = Merged()
    for path in paths:
        if path.is_file():
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
            if document is not None:  # an empty file says nothing, as one that does not exist
                _merge(merged, path, document)
    return merged


def _merge(merged: Merged, path: Path, document: object) -> None:
    if not isinstance(document, dict):
        raise TypeError(f"{path} is {type(document).__name__}")
    for kind, entries in merged.entries.items():
        for values in document.get(f"{kind}s") or []:
            if not isinstance(values, dict):
                raise TypeError(f"an entry of {kind}s is {type(values).__name__}")
            name = values["name"]
            if all(entry.name != name for entry in entries):
                entries.append(Entry(path, values))
    if not merged.current_context and (name := document.get("current-context")):
        merged.current_context = str(name)
