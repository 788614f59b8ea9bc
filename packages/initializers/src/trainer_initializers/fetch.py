"""Fetches the files of a FileStore into a directory, in parts and on several connections.

Threads take part after part from one iterator. Each holds one piece of at most 1 MiB, so memory does not grow with the
size of files or with the speed of the network.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NoReturn

from trainer_initializers.errors import TransferError
from trainer_initializers.file_names import fault_of
from trainer_initializers.index import FileIndex, digest_of
from trainer_initializers.part_writer import PartWriter
from trainer_initializers.parts import FilePart, PartLog, checksum_of, parts_of
from trainer_initializers.retries import Retries
from trainer_initializers.selected_rows import SelectedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainer_initializers.file_store import FileStore, RemoteFile
    from trainer_initializers.options import TransferOptions
    from trainer_initializers.staging import Staging
    from trainer_initializers.transfer_progress import TransferProgress

_DIGEST_ATTEMPTS = 2
"""A disk or proxy that broke a file once may deliver it right the second time."""


def fetch(
    storage: FileStore,
    staging: Staging,
    options: TransferOptions,
    progress: TransferProgress,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> FileIndex:
    """Make the target of the staging directory what the storage has, and return its index.

    What is there already is not fetched again: files of an earlier fetch of the same source, and the parts that one has
    written before it was interrupted.

    Raises:
        TransferError: it cannot succeed; what was fetched is kept for the next attempt.
    """
    retries = Retries(options.retry_interval, sleep)
    with staging.locked():
        staging.check_target()
        files = checked(retries.call(lambda: list(storage.files())), options)
        known = _known(staging, options)
        rows = SelectedRows(options, files) if options.split else None
        index = FileIndex(options.source, tuple(files))
        missing = [file for file in files if not _is_published(staging, file, known)]
        if rows is None:
            is_there = not missing and known.keys() <= index.by_path().keys() and staging.published() is not None
        elif is_there := rows.are_there(known.values(), staging):
            index = FileIndex(options.source, tuple(known.values()))
        if is_there:
            progress.start(size := sum(file.size or 0 for file in index.files))
            progress.add(size)
            staging.discard()
            return index
        log = PartLog(staging.open_log())
        try:
            writer = PartWriter(storage, retries, progress)
            work = _Fetch(staging, log, progress, writer=writer, counts_target=rows is None)
            if rows is None:
                work.run(missing, options.connections)
            else:
                index = rows.select(staging, lambda files: work.run(files, options.connections))
        finally:
            log.close()
        staging.publish(index, known.keys() - index.by_path().keys())
        return index


def checked(files: Sequence[RemoteFile], options: TransferOptions) -> Sequence[RemoteFile]:
    """The files, unless there are none, or their names cannot be those of files below one directory."""
    if not files:
        patterns = f"; ALLOW_PATTERNS={','.join(options.allow)}" if options.allow else ""
        patterns += f"; IGNORE_PATTERNS={','.join(options.ignore)}" if options.ignore else ""
        raise TransferError(f"{options.shown} has no files that are asked for{patterns}: check storageUri and patterns")
    names = {file.path for file in files}
    if len(names) < len(files):
        raise TransferError(f"{options.shown} has several files of one name: check the source")
    for file in files:
        if fault := fault_of(file.path):
            raise TransferError(f"{options.shown} has a file named {file.path!r}, {fault}")
        for parent in PurePosixPath(file.path).parents:
            if str(parent) in names:
                raise TransferError(
                    f"{options.shown} has {str(parent)!r} and {file.path!r}, and no directory can hold both: leave one "
                    "out with IGNORE_PATTERNS"
                )
    return files


def _known(staging: Staging, options: TransferOptions) -> dict[str, RemoteFile]:
    """The files of an earlier fetch."""
    published = staging.published()
    if published is None:
        return {}
    if published.source != options.source:
        raise TransferError(
            f"the target {staging.target} holds {published.source}: empty it, or use another volume for "
            f"{options.source}"
        )
    return published.by_path()


def _is_published(staging: Staging, file: RemoteFile, known: dict[str, RemoteFile]) -> bool:
    before = known.get(file.path)
    if before is None or before.version != file.version:
        return False
    size = staging.published_size(file.path)
    return size is not None and file.size in {None, size}


@dataclass(slots=True)
class _Remaining:
    """How much of a file is not done yet."""

    file: RemoteFile
    parts: int
    attempts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_last(self) -> bool:
        with self.lock:
            self.parts -= 1
            return self.parts == 0


class _Fetch:
    """The threads of one fetch, and what they share."""

    def __init__(
        self,
        staging: Staging,
        log: PartLog,
        progress: TransferProgress,
        *,
        writer: PartWriter,
        counts_target: bool,
    ) -> None:
        self._staging, self._log, self._progress = staging, log, progress
        self._counts_target = counts_target  # not where the target has some rows of a file only
        self._writer = writer
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def run(self, files: Sequence[RemoteFile], connections: int) -> None:
        """Fetch the files; the first error ends all threads."""
        files = [file for file in files if not self._is_whole(file)]
        self._progress.start(sum(file.size or 0 for file in files), is_known=all(f.size is not None for f in files))
        self._check_space(files)
        work = self._parts(files)
        with ThreadPoolExecutor(connections, thread_name_prefix="fetch") as threads:
            for _ in range(connections):
                threads.submit(self._take, work)
        if self._error is not None:
            raise self._error

    def _take(self, work: Iterator[tuple[_Remaining, FilePart]]) -> None:
        """Complete part after part; what the other threads raise once they are stopped does not count."""
        try:
            while not self._writer.stopped.is_set():
                with self._lock:
                    item = next(work, None)
                if item is None:
                    return
                self._complete(*item)
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
                self._writer.stopped.set()

    def _parts(self, files: Sequence[RemoteFile]) -> Iterator[tuple[_Remaining, FilePart]]:
        for file in files:
            parts = parts_of(file)
            remaining = _Remaining(file, len(parts))
            for part in parts:
                yield remaining, part

    def _complete(self, remaining: _Remaining, part: FilePart) -> None:
        """Have one part on the disk, and after the last one the file."""
        known = self._log.checksum(remaining.file, part)
        with self._staging.open_collected(remaining.file.path) as opened:
            if known is not None and checksum_of(opened, part) == known:
                self._progress.add(os.fstat(opened.fileno()).st_size if part.end is None else part.end - part.start)
            else:
                self._log.add_part(remaining.file, part, self._writer.write(remaining.file, part, opened))
        if remaining.is_last():
            self._finish(remaining)

    def _finish(self, remaining: _Remaining) -> None:
        """Verify a file whose parts are complete."""
        file = remaining.file
        with self._staging.open_collected(file.path) as opened:
            size = os.fstat(opened.fileno()).st_size
            is_right = file.digest is None or digest_of(opened, file.digest.partition(":")[0]) == file.digest
            os.fsync(opened.fileno())
        if is_right:
            self._log.add_whole(file, size)
            return
        remaining.attempts += 1
        self._log.drop(file)
        self._staging.drop_collected(file.path)
        if remaining.attempts == _DIGEST_ATTEMPTS:
            raise TransferError(
                f"{file.path}: the checksum is not {file.digest}, though it was fetched twice: check the source"
            )
        parts = parts_of(file)
        remaining.parts = len(parts)
        self._progress.add(-size)
        for part in parts:
            self._complete(remaining, part)

    def _is_whole(self, file: RemoteFile) -> bool:
        """Whether an earlier fetch has completed the file, be it in the staging directory or already in the target."""
        size = self._log.size_when_whole(file)
        if size is None:
            return False
        if size == self._staging.collected_size(file.path):
            return True
        return self._counts_target and size == self._staging.published_size(file.path)

    def _check_space(self, files: Sequence[RemoteFile]) -> None:
        """Raise TransferError if the volume cannot hold what is missing."""
        if (largest := max((file.size or 0 for file in files), default=0)) > self._staging.volume_bytes():
            self._refuse(largest)  # before its parts are counted, of which there may be any number
        missing = sum(
            part.end - part.start
            for file in files
            for part in parts_of(file)
            if part.end is not None and self._log.checksum(file, part) is None
        )
        if missing > self._staging.free_bytes():
            self._refuse(missing)

    def _refuse(self, missing: int) -> NoReturn:
        raise TransferError(
            f"the volume of {self._staging.target} is too small: {_show(missing)} are to be fetched, and "
            f"{_show(self._staging.free_bytes())} are free: request a larger volume, or leave files out with "
            "IGNORE_PATTERNS"
        )


def _show(size: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size} {unit}"
        size = -(-size // 1024)
    return f"{size} TiB"
