"""The kubeconfig of all dev clusters of a user: a context for each, of which one is the current one.

`trainer up` adds the context of its cluster and makes it the current one, as kind does. kubectl may write to the file
as well: other contexts, and the namespace of ours, stay.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from trainer.cli.errors import CommandError
from trainer.cli.processes.state_directory import CONTEXT_PREFIX, StateDirectory, is_name, user_directory

_KINDS: Final = ("cluster", "user", "context")


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts in one file; all methods block.

    All of them raise `CommandError` where the file is no kubeconfig.
    """

    path: Path

    @classmethod
    def of_user(cls) -> Contexts:
        """Those of this user; the file need not exist."""
        return cls(user_directory() / "kubeconfig")

    @property
    def current(self) -> str:
        """The current context; "" where there is none."""
        return str(self._read().get("current-context") or "")

    @property
    def current_cluster(self) -> str | None:
        """The name of the dev cluster to which the current context leads; None where it leads to none."""
        document = self._read()
        return _cluster_of(document, str(document.get("current-context") or ""))

    def names(self) -> list[str]:
        """The contexts, in the order of the file."""
        return [entry["name"] for entry in self._read()["contexts"]]

    def cluster_of(self, context: str) -> str | None:
        """The name of the dev cluster to which a context leads; None where there is no such context."""
        return _cluster_of(self._read(), context)

    def address_of(self, state: StateDirectory) -> str:
        """Where the API server of a cluster is; "" where it has not started yet."""
        named = (entry["cluster"] for entry in self._read()["clusters"] if entry["name"] == state.context)
        return next((str(cluster.get("server") or "") for cluster in named), "")

    def add(self, state: StateDirectory) -> str:
        """Add a cluster that has started, or replace it, and make it the current one; returns which was that before."""
        one = _parsed(state.kubeconfig)
        with self._changing() as document:
            before = str(document.get("current-context") or "")
            for kind in _KINDS:
                (entry,) = one[f"{kind}s"]
                _put(document[f"{kind}s"], kind, {"name": state.context, kind: _renamed(kind, entry[kind], state)})
            document["current-context"] = state.context
        return before

    def use(self, context: str) -> None:
        """Make a context the current one."""
        with self._changing() as document:
            document["current-context"] = context

    def remove(self, state: StateDirectory) -> None:
        """Remove a cluster with all contexts that lead to it."""
        if not self.path.exists():
            return
        with self._changing() as document:
            gone = {each["name"] for each in document["contexts"] if each["context"].get("cluster") == state.context}
            document["contexts"] = [each for each in document["contexts"] if each["name"] not in gone]
            for kind in ("clusters", "users"):
                document[kind] = [each for each in document[kind] if each["name"] != state.context]
            if document.get("current-context") in gone:
                document["current-context"] = ""

    def take_over(self, state: StateDirectory, *, is_of_former: bool = False) -> None:
        """Give a cluster of 0.1, whose kubeconfig this file was, one of its own.

        Args:
            state: of the cluster.
            is_of_former: whether 0.1 has started it. Default: only where it has no kubeconfig of its own.
        """
        if not self.path.exists() or (state.kubeconfig.exists() and not is_of_former):
            return
        document = self._read()
        own = {f"{kind}s": [each for each in document[f"{kind}s"] if each["name"] == state.context] for kind in _KINDS}
        if all(own.values()):
            head = {"apiVersion": "v1", "kind": "Config"}
            write_kubeconfig(state.kubeconfig, head | own | {"current-context": state.context})

    def _read(self) -> dict[str, Any]:
        return _parsed(self.path) if self.path.exists() else _parsed(None)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The document, which is written after the body if that has changed it; other commands wait."""
        # Not `kubeconfig.lock`, whose mere existence means to kubectl that somebody writes.
        with (self.path.parent / "contexts.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            document = self._read()
            yield document
            if document != self._read() or not self.path.exists():
                write_kubeconfig(self.path, document)


def _parsed(path: Path | None) -> dict[str, Any]:
    """A kubeconfig with all its lists, or an empty one."""
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    try:
        text = path.read_text(encoding="utf-8") if path is not None else ""
        document |= yaml.safe_load(text) or {}
        for kind in _KINDS:
            document[f"{kind}s"] = list(document.get(f"{kind}s") or [])
            for entry in document[f"{kind}s"]:
                entry["name"], entry[kind].get
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise CommandError(
            f"cannot use {path}, the kubeconfig of `trainer up`: {type(error).__name__}; delete it, and run trainer up "
            "for each cluster again"
        ) from error
    return document


def _cluster_of(document: dict[str, Any], context: str) -> str | None:
    for entry in document["contexts"]:
        if entry["name"] == context:
            cluster = str(entry["context"].get("cluster") or "")
            name = cluster.removeprefix(CONTEXT_PREFIX)
            return name if name != cluster and is_name(name) else None
    return None


def _put(entries: list[dict[str, Any]], kind: str, new: dict[str, Any]) -> None:
    """Replace the entry of this name, or add it; a context keeps the namespace that its user has chosen."""
    for index, entry in enumerate(entries):
        if entry["name"] == new["name"]:
            if kind == "context" and entry[kind].get("namespace"):
                new[kind] = new[kind] | {"namespace": entry[kind]["namespace"]}
            entries[index] = new
            return
    entries.append(new)


def _renamed(kind: str, stanza: dict[str, Any], state: StateDirectory) -> dict[str, Any]:
    """Each dev cluster calls its only context, cluster and user the same."""
    return stanza | {"cluster": state.context, "user": state.context} if kind == "context" else stanza


def write_kubeconfig(path: Path, document: dict[str, Any]) -> None:
    """Replace a kubeconfig, which is for its owner alone, atomically; blocks."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        yaml.safe_dump(document, stream, sort_keys=False)
    temporary.replace(path)
