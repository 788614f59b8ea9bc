"""The journal directory: a snapshot of all objects, and the changes since in segments.

`snapshot-N` is the state at resource version N, `journal-N` begins with the change after N. The newest snapshot and the
segments from there on count; older files are leftovers of a compaction and go away with the next one. Every file starts
with a line that says its format.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec
import structlog

from trainer.kube.client import EventType
from trainer.kube.objects import ObjectKey
from trainer_devcluster.apiserver.storage.checksummed import read_lines
from trainer_devcluster.apiserver.storage.journal_file import JournalFile, sync_directory
from trainer_devcluster.apiserver.storage.storage import Partition

if TYPE_CHECKING:
    from pathlib import Path

    from trainer_devcluster.apiserver.storage.storage import State, Storage

log = structlog.get_logger(__name__)
T = TypeVar("T")

_SNAPSHOT, _JOURNAL, _TEMPORARY = "snapshot-", "journal-", ".new"
_FORMAT = "trainer-dev-cluster/1"
_LINE_OBJECTS = 256
"""Objects in one line of a snapshot."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change, or an object, as it is written."""

    group: str
    plural: str
    name: str
    namespace: str = ""
    type: str = ""
    """What happened; "" for an object of a snapshot."""
    object: Any = None
    """None for a deletion."""

    @property
    def partition(self) -> Partition:
        """Where the object is kept."""
        return Partition(self.group, self.plural)

    @property
    def key(self) -> ObjectKey:
        """Key of the object."""
        return ObjectKey(self.namespace, self.name)


class Batch(msgspec.Struct, frozen=True):
    """Changes that are written together."""

    first: int
    """Resource version of the first one."""
    changes: list[Entry]


class _Header(msgspec.Struct, frozen=True):
    format: str
    revision: int
    objects: int = 0
    """How many objects the snapshot has."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found."""

    segment: JournalFile
    """Where the next changes belong."""
    snapshot_bytes: int
    journal_bytes: int
    """Of all segments behind the snapshot."""


class JournalDirectory:
    """The files; every method blocks and may raise OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, storage: Storage, first_revision: int) -> Loaded:
        """Fill a storage with what is here, and cut off what was being written when the last server died.

        Args:
            storage: empty.
            first_revision: the resource version to start from when nothing is here.

        Raises:
            OSError: a file is damaged, missing or cannot be read; a person has to put it back or to start afresh.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for leftover in self.path.glob(f"*{_TEMPORARY}"):
            leftover.unlink()
        snapshots, segments = self._numbered(_SNAPSHOT), self._numbered(_JOURNAL)
        if not snapshots:
            if segments:
                self._refuse(segments[min(segments)], "the snapshot that it continues is missing")
            storage.restore({}, first_revision)
            size = self.write_snapshot({}, storage.revision)
            return Loaded(self.segment(storage.revision), size, 0)
        start = max(snapshots)
        snapshot_bytes = self._load_snapshot(storage, snapshots[start], start)
        numbers = sorted(number for number in segments if number >= start)
        journal_bytes = sum(self._replay(storage, segments[n], n, is_last=n == numbers[-1]) for n in numbers)
        return Loaded(self.segment(numbers[-1] if numbers else start), snapshot_bytes, journal_bytes)

    def segment(self, revision: int) -> JournalFile:
        """Open the segment for the changes after a revision; one that exists already is continued."""
        file = JournalFile(self.path / f"{_JOURNAL}{revision}")
        if file.size == 0:
            file.append(msgspec.json.encode(_Header(_FORMAT, revision)))
            file.sync()
            sync_directory(self.path)
        return file

    def write_snapshot(self, state: State, revision: int) -> int:
        """Write the state at a revision; returns the size of the file, which is there as a whole or not at all."""
        path = self.path / f"{_SNAPSHOT}{revision}"
        entries = [
            Entry(partition.group, partition.plural, key.name, key.namespace, object=obj)
            for partition, items in state.items()
            for key, obj in items.items()
        ]
        with JournalFile(path.with_name(path.name + _TEMPORARY), anew=True) as file:
            file.append(msgspec.json.encode(_Header(_FORMAT, revision, len(entries))))
            for begin in range(0, len(entries), _LINE_OBJECTS):
                file.append(msgspec.json.encode(entries[begin : begin + _LINE_OBJECTS]))
            file.sync()
            file.path.replace(path)
            sync_directory(self.path)
            return file.size

    def forget_before(self, revision: int) -> None:
        """Delete what a snapshot at this revision has made superfluous."""
        for prefix in (_JOURNAL, _SNAPSHOT):
            for number, path in self._numbered(prefix).items():
                if number < revision:
                    path.unlink()

    def _numbered(self, prefix: str) -> dict[int, Path]:
        found = {}
        for path in self.path.glob(f"{prefix}*"):
            number = path.name.removeprefix(prefix)
            if number.isascii() and number.isdigit():
                found[int(number)] = path
        return found

    def _load_snapshot(self, storage: Storage, path: Path, revision: int) -> int:
        content = path.read_bytes()
        lines = read_lines(content)
        if lines.damaged_line is not None:
            self._refuse(path, f"line {lines.damaged_line} is damaged")
        header = self._header(path, lines.documents, revision)
        state: State = {}
        for document in lines.documents[1:]:
            for entry in self._decoded(path, document, list[Entry]):
                state.setdefault(entry.partition, {})[entry.key] = entry.object
        found = sum(map(len, state.values()))
        if found != header.objects:
            self._refuse(path, f"it has {found} objects instead of {header.objects}")
        storage.restore(state, revision)
        return len(content)

    def _replay(self, storage: Storage, path: Path, revision: int, *, is_last: bool) -> int:
        """Make the changes of a segment again; returns its size."""
        if storage.revision != revision:
            self._refuse(path, f"the changes between resource versions {storage.revision} and {revision} are missing")
        content = path.read_bytes()
        lines = read_lines(content)
        if lines.damaged_line is not None:
            if not (is_last and lines.is_torn):
                self._refuse(path, f"line {lines.damaged_line} is damaged")
            lost = len(content) - lines.intact_bytes
            log.warning("cut off an unfinished write that no client has seen", file=str(path), bytes=lost)
            os.truncate(path, lines.intact_bytes)
        if lines.documents:
            self._header(path, lines.documents, revision)
        for number, document in enumerate(lines.documents[1:], 2):
            batch = self._decoded(path, document, Batch)
            if batch.first != storage.revision + 1:
                self._refuse(path, f"line {number} does not follow the one before")
            self._replay_batch(storage, path, batch, len(document) // max(len(batch.changes), 1))
        return lines.intact_bytes

    def _replay_batch(self, storage: Storage, path: Path, batch: Batch, size: int) -> None:
        try:
            for entry in batch.changes:
                storage.replay(entry.partition, EventType(entry.type), entry.key, entry.object, size)
        except (ValueError, KeyError):
            self._refuse(path, f"the change after resource version {storage.revision} does not fit the objects")

    def _header(self, path: Path, documents: list[bytes], revision: int) -> _Header:
        header = self._decoded(path, documents[0] if documents else b"", _Header)
        if header.format != _FORMAT:
            self._refuse(path, f"its format is {header.format!r}, and this version reads {_FORMAT!r}")
        if header.revision != revision:
            self._refuse(path, "it has been renamed")
        return header

    def _decoded(self, path: Path, document: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(document, type=kind)
        except msgspec.MsgspecError as error:
            self._refuse(path, str(error))

    def _refuse(self, path: Path, problem: str) -> NoReturn:
        remedy = f"put it back from a copy, or move {self.path} away to start with an empty cluster"
        raise OSError(errno.EINVAL, f"cannot be used ({problem}): {remedy}", str(path))
