"""Makes a directory what a FileStore has, without fetching again what is there already."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from trainer_initializers.downloads import Downloads
from trainer_initializers.errors import TransferError
from trainer_initializers.file_names import fault_of
from trainer_initializers.file_store import FileStore, RemoteFile
from trainer_initializers.index import FileIndex
from trainer_initializers.options import TransferOptions
from trainer_initializers.parts import PartLog
from trainer_initializers.retries import Retries
from trainer_initializers.selected_rows import SelectedRows
from trainer_initializers.staging import Staging
from trainer_initializers.transfer_progress import TransferProgress


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
            downloads = Downloads(storage, staging, log, retries, progress)
            if rows is None:
                downloads.run([file for file in missing if not _was_moved(staging, file, log)], options.connections)
            else:
                index = rows.select(staging, lambda files: downloads.run(files, options.connections))
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


def _was_moved(staging: Staging, file: RemoteFile, log: PartLog) -> bool:
    """Whether a fetch that was interrupted while it published has moved the file into the target already."""
    size = log.size_when_whole(file)
    return size is not None and size == staging.published_size(file.path) and staging.collected_size(file.path) is None
