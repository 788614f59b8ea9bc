"""The objects of a dev cluster 0.1, which kept them in a directory and not in a database.

`snapshot-N` is the state at resource version N, `journal-N` begins with the change after N. A line is the CRC-32 of a
JSON document, in hexadecimal, a space and the document; the first one of a file is its header.

A server takes over what 0.1 has written since, and when it stops it leaves its objects here as well: whoever goes back
to 0.1, and forth again, finds them. Where there is no such directory none is made.

Resource versions do not show who has written last, since a server that is killed leaves nothing. The journal
does: 0.1 begins one when it starts, and what is left here is a snapshot alone.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from trainer.kube.client import EventType
from trainer.kube.objects import ObjectKey
from trainer_devcluster.apiserver.storage.journal import Database
from trainer_devcluster.apiserver.storage.storage import Partition, State

log = structlog.get_logger(__name__)

_SNAPSHOT: Final = "snapshot-"
_JOURNAL: Final = "journal-"
_FORMAT: Final = "trainer-dev-cluster/1"
_LINE_OBJECTS: Final = 256
_CHECKSUM: Final = 9
"""Bytes before the document of a line."""


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change, or an object of a snapshot."""

    group: str
    plural: str
    name: str
    namespace: str = ""
    type: str = ""
    object: Any = None

    @property
    def partition(self) -> Partition:
        return Partition(self.group, self.plural)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class _Batch(msgspec.Struct, frozen=True):
    first: int
    changes: list[_Entry]


class _Header(msgspec.Struct, frozen=True):
    format: str
    revision: int
    objects: int = 0


@dataclass(slots=True)
class _Found:
    revision: int
    is_continued: bool
    """Whether 0.1 has written since the snapshot."""
    state: State = field(default_factory=dict)

    def put(self, entry: _Entry) -> None:
        self.state.setdefault(entry.partition, {})[entry.key] = entry.object

    def change(self, entry: _Entry) -> None:
        self.revision += 1
        if entry.type == EventType.DELETED:
            self.state[entry.partition].pop(entry.key)
        else:
            self.put(entry)


def take_over(directory: Path, database: Path) -> None:
    """Fill a database with the objects of the directory, if 0.1 has written since this version did; blocks.

    A database that has other objects is kept beside the new one, as `.replaced-` and its resource version.

    Raises:
        OSError: one of the two cannot be read, or the disk is full or broken.
    """
    if not any(directory.glob(f"{_SNAPSHOT}*")):
        return
    found, present = _read(directory), Database(database)
    try:
        revision = present.revision()
    finally:
        present.close()
    if revision is not None and not found.is_continued:
        return
    if revision != found.revision:
        if revision is not None:
            _put_aside(database, revision)
        new = Database(database)
        try:
            new.fill(found.state, found.revision)
        finally:
            new.close()
    leave(directory, found.state, found.revision)  # without a journal: it is taken over once


def _put_aside(database: Path, revision: int) -> None:
    kept = database.with_name(f"{database.name}.replaced-{revision}")
    database.replace(kept)
    log.warning("trainer-devcluster 0.1 has run since; kept the objects of before its run", file=str(kept))


def leave(directory: Path, state: State, revision: int) -> None:
    """Write the objects for a dev cluster 0.1, if there was one here; blocks.

    Raises:
        OSError: the disk is full or broken.
    """
    if not directory.is_dir():
        return
    older = [*directory.glob(f"{_SNAPSHOT}*"), *directory.glob(f"{_JOURNAL}*")]
    entries = [
        _Entry(partition.group, partition.plural, key.name, key.namespace, object=obj)
        for partition, items in state.items()
        for key, obj in items.items()
    ]
    documents: list[object] = [_Header(_FORMAT, revision, len(entries))]
    documents += [entries[begin : begin + _LINE_OBJECTS] for begin in range(0, len(entries), _LINE_OBJECTS)]
    path = directory / f"{_SNAPSHOT}{revision}"
    temporary = path.with_name(f"{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(_line(msgspec.json.encode(document)) for document in documents)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    for each in older:
        if each != path:
            each.unlink(missing_ok=True)


def _read(directory: Path) -> _Found:
    snapshots, segments = _numbered(directory, _SNAPSHOT), _numbered(directory, _JOURNAL)
    start = max(snapshots, default=-1)
    path = snapshots.get(start, directory)
    try:
        numbers = sorted(each for each in segments if each >= start)
        found = _Found(start, is_continued=bool(numbers))
        header, *lines = _documents(path)
        _check(header, start)
        for line in lines:
            for entry in msgspec.json.decode(line, type=list[_Entry]):
                found.put(entry)
        for number in numbers:
            path = segments[number]
            _replay(found, path, number)
    except (ValueError, KeyError) as error:
        remedy = f"put a copy back, or move {directory} away to start without the objects of trainer-devcluster 0.1"
        raise OSError(errno.EINVAL, f"cannot be used ({error}): {remedy}", str(path)) from error
    return found


def _replay(found: _Found, path: Path, revision: int) -> None:
    if revision != found.revision:
        raise ValueError(f"the changes between resource versions {found.revision} and {revision} are missing")
    header, *lines = [*_documents(path)] or [b""]
    if header:  # a server that was killed right after a snapshot has left an empty file
        _check(header, revision)
    for line in lines:
        batch = msgspec.json.decode(line, type=_Batch)
        if batch.first != found.revision + 1:
            raise ValueError(f"the changes after resource version {found.revision} are missing")
        for entry in batch.changes:
            found.change(entry)


def _check(header: bytes, revision: int) -> None:
    decoded = msgspec.json.decode(header, type=_Header)
    if (decoded.format, decoded.revision) != (_FORMAT, revision):
        raise ValueError(f"its format is {decoded.format}, resource version {decoded.revision}")


def _documents(path: Path) -> Iterator[bytes]:
    """The documents of a file; what was being written when the last server was killed is left out."""
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        document = line[_CHECKSUM:]
        if line[:_CHECKSUM] != b"%08x " % zlib.crc32(document):
            if number < len(lines) - 1:
                raise ValueError(f"line {number} is damaged")
            return
        yield document


def _line(document: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(document), document)


def _numbered(directory: Path, prefix: str) -> dict[int, Path]:
    found = {path.name.removeprefix(prefix): path for path in directory.glob(f"{prefix}*")}
    return {int(number): path for number, path in found.items() if number.isascii() and number.isdigit()}
