"""Downloads files into a staging directory, in parts and on several threads.

Each thread takes part after part, and holds one piece of at most 1 MiB, so memory does not grow with the size of files
or with the speed of the network.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

from trainer_initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError
from trainer_initializers.file_store import FileStore, RemoteFile
from trainer_initializers.index import digest_of
from trainer_initializers.parts import FilePart, PartLog, checksum_of, parts_of
from trainer_initializers.retries import Retries
from trainer_initializers.staging import Staging
from trainer_initializers.transfer_progress import TransferProgress

_DIGEST_ATTEMPTS = 2
"""A disk or proxy that broke a file once may deliver it right the second time."""


@dataclass(slots=True)
class _Download:
    """A file that lacks parts."""

    file: RemoteFile
    missing: int
    """Parts that are not on the disk yet."""
    attempts: int = 1


class Downloads:
    """Downloads the files of a FileStore; what the log names is not read again."""

    def __init__(
        self, storage: FileStore, staging: Staging, log: PartLog, retries: Retries, progress: TransferProgress
    ) -> None:
        self._storage, self._staging, self._log = storage, staging, log
        self._retries, self._progress = retries, progress
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        """Once set, no thread asks for another byte."""

    def run(self, files: Sequence[RemoteFile], connections: int) -> None:
        """Download the files that are not collected yet; the first error ends all threads."""
        files = [file for file in files if not self._is_collected(file)]
        self._progress.start(sum(file.size or 0 for file in files), is_known=all(f.size is not None for f in files))
        self._check_space(files)
        work = ((download, part) for file in files for download, part in _parts_to_get(file))
        with ThreadPoolExecutor(connections, thread_name_prefix="fetch") as threads:
            try:
                for done in as_completed([threads.submit(self._take, work) for _ in range(connections)]):
                    done.result()
            except BaseException:
                self._stopped.set()
                raise

    def _take(self, work: Iterator[tuple[_Download, FilePart]]) -> None:
        while True:
            self._check_stopped()
            with self._lock:
                item = next(work, None)
            if item is None:
                return
            self._get(*item)

    def _get(self, download: _Download, part: FilePart) -> None:
        """Have one part on the disk, and after the last one the file."""
        file = download.file
        known = self._log.checksum(file, part)
        with self._staging.open_collected(file.path) as opened:
            if known is not None and checksum_of(opened, part) == known:
                self._progress.add(os.fstat(opened.fileno()).st_size if part.end is None else part.end - part.start)
            else:
                self._log.add_part(file, part, self._write(file, part, opened))
        with self._lock:
            download.missing -= 1
            is_last = download.missing == 0
        if is_last:
            self._finish(download)

    def _finish(self, download: _Download) -> None:
        """Verify a file whose parts are complete, and get it once more where its checksum is wrong."""
        file = download.file
        with self._staging.open_collected(file.path) as opened:
            size = os.fstat(opened.fileno()).st_size
            is_right = file.digest is None or digest_of(opened, file.digest.partition(":")[0]) == file.digest
            os.fsync(opened.fileno())
        if is_right:
            self._log.add_whole(file, size)
            return
        self._log.drop(file)
        self._staging.drop_collected(file.path)
        if download.attempts == _DIGEST_ATTEMPTS:
            raise TransferError(
                f"{file.path}: the checksum is not {file.digest}, though it was fetched twice: check the source"
            )
        self._progress.add(-size)
        parts = parts_of(file)
        again = _Download(file, len(parts), download.attempts + 1)
        for part in parts:
            self._get(again, part)

    def _write(self, file: RemoteFile, part: FilePart, opened: BinaryIO) -> int:
        """Write the bytes of a part, and return their CRC-32; an interrupted request is followed by one for the rest.

        Raises:
            TransferError: they cannot be had.
        """
        descriptor, is_ranged = opened.fileno(), file.is_ranged and part.end is not None
        if file.size is not None and os.fstat(descriptor).st_size > file.size:
            os.ftruncate(descriptor, file.size)
        position, checksum, attempts = part.start, 0, 0
        while part.end is None or position < part.end:
            try:
                for data in self._read(file, part, position):
                    _write_all(descriptor, data, position)
                    position, checksum = position + len(data), zlib.crc32(data, checksum)
                    self._progress.add(len(data))
                    attempts = 0 if is_ranged else attempts
                if part.end is None:
                    os.ftruncate(descriptor, position)
                    break
            except InterruptedTransferError as error:
                attempts += 1
                self._check_stopped()
                self._retries.wait(attempts, error, file.path)
                if not is_ranged:  # only the whole can be asked for
                    self._progress.add(part.start - position)
                    position, checksum = part.start, 0
        return checksum

    def _read(self, file: RemoteFile, part: FilePart, position: int) -> Iterator[bytes]:
        for data in self._storage.read(file, position, part.end):
            self._check_stopped()
            position += len(data)
            if part.end is not None and position > part.end:
                raise UnavailableSourceError(f"{file.path}: more bytes came than were asked for: start again")
            yield data
        if part.end is not None and position < part.end:
            raise InterruptedTransferError(f"the answer ended {part.end - position} bytes early")

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise TransferError("another file could not be fetched")

    def _is_collected(self, file: RemoteFile) -> bool:
        size = self._log.size_when_whole(file)
        return size is not None and size == self._staging.collected_size(file.path)

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


def _parts_to_get(file: RemoteFile) -> Iterator[tuple[_Download, FilePart]]:
    parts = parts_of(file)
    download = _Download(file, len(parts))
    return ((download, part) for part in parts)


def _write_all(descriptor: int, data: bytes, position: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, position)
        view, position = view[written:], position + written


def _show(size: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size} {unit}"
        size = -(-size // 1024)
    return f"{size} TiB"
