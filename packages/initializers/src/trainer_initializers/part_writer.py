"""Writes the bytes of one part of a file to their place, over as many requests as it takes."""

from __future__ import annotations

import os
import threading
import zlib
from typing import TYPE_CHECKING, BinaryIO

from trainer_initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer_initializers.file_store import FileStore, RemoteFile
    from trainer_initializers.parts import FilePart
    from trainer_initializers.retries import Retries
    from trainer_initializers.transfer_progress import TransferProgress


class PartWriter:
    """Reads parts from a FileStore; a request that is interrupted is followed by one for the rest."""

    def __init__(self, storage: FileStore, retries: Retries, progress: TransferProgress) -> None:
        self._storage, self._retries, self._progress = storage, retries, progress
        self.stopped = threading.Event()
        """Once set, no thread asks for another byte."""

    def write(self, file: RemoteFile, part: FilePart, opened: BinaryIO) -> int:
        """Write the bytes of a part to the file that is open, and return their CRC-32.

        Raises:
            TransferError: they cannot be had.
        """
        descriptor = opened.fileno()
        if file.size is not None and os.fstat(descriptor).st_size > file.size:
            os.ftruncate(descriptor, file.size)
        position, checksum, attempts = part.start, 0, 0
        while part.end is None or position < part.end:
            try:
                for data in self._read(file, part, position):
                    _write_all(descriptor, data, position)
                    position, checksum = position + len(data), zlib.crc32(data, checksum)
                    self._progress.add(len(data))
                    attempts = 0 if file.is_ranged and part.end is not None else attempts
                if part.end is None:
                    os.ftruncate(descriptor, position)
                    break
            except InterruptedTransferError as error:
                attempts += 1
                self._check_stopped()
                self._retries.wait(attempts, error, file.path)
                if not file.is_ranged or part.end is None:  # only the whole can be asked for
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
        if self.stopped.is_set():
            raise TransferError("another file could not be fetched")


def _write_all(descriptor: int, data: bytes, position: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, position)
        view, position = view[written:], position + written
