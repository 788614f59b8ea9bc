"""The rows that SPLIT selects: which files have to be fetched for them, and what of these files is kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from trainer_initializers.errors import TransferError
from trainer_initializers.file_store import RemoteFile
from trainer_initializers.index import FileIndex
from trainer_initializers.options import TransferOptions
from trainer_initializers.rows import KINDS, copy_rows, count_rows, has_rows
from trainer_initializers.split import parse_split, splits_of
from trainer_initializers.staging import Staging


class SelectedRows:
    """The slices of one dataset."""

    def __init__(self, options: TransferOptions, files: Sequence[RemoteFile]) -> None:
        """Find the files of the splits.

        Raises:
            TransferError: there are none.
        """
        self._options = options
        self._slices = parse_split(options.split)
        by_path = {file.path: file for file in files}
        splits = splits_of(path for path in by_path if has_rows(path))
        self._splits = {name: [by_path[path] for path in paths] for name, paths in splits.items()}
        if not self._splits:
            raise self._refuse(f"has no files with rows to select ({KINDS}): remove SPLIT")
        if missing := [each.name for each in self._slices if each.name not in self._splits]:
            raise self._refuse(f"has no split {missing[0]}: it has {', '.join(sorted(self._splits))}")
        facts = [f"{file.path}\0{file.version}" for each in self._slices for file in self._splits[each.name]]
        self._version = hashlib.sha256("\0".join(facts).encode(errors="surrogatepass")).hexdigest()

    def are_there(self, known: Iterable[RemoteFile], staging: Staging) -> bool:
        """Whether an earlier fetch has selected them, and the source is as it was."""
        files = list(known)
        return bool(files) and all(
            file.version == self._version and file.size == staging.published_size(file.path) for file in files
        )

    def select(self, staging: Staging, fetch: Callable[[Sequence[RemoteFile]], None]) -> FileIndex:
        """Have the files fetched, and keep the rows; no more files are fetched than have to be read or counted.

        Raises:
            TransferError: there are no such rows, or a file cannot be read.
        """
        counts = {name: self._count(name, staging, fetch) for name in dict.fromkeys(each.name for each in self._slices)}
        ranges: dict[str, list[tuple[int, int]]] = {}
        for each in self._slices:
            start, stop = each.bounds(sum(counts[each.name].values()))
            at = 0
            for path, count in counts[each.name].items():
                low, high = max(start - at, 0), min(stop - at, count)
                at += count
                if low < high:
                    ranges.setdefault(path, []).append((low, high))
        if not ranges:
            found = ", ".join(f"{name} has {sum(counts[name].values())} rows" for name in counts)
            raise self._refuse(f"has no such rows: {found}")
        for path, selected in ranges.items():
            with staging.open_collected(path) as opened, staging.open_selected(path) as target:
                copy_rows(opened, target, path, selected)
                target.flush()
                os.fsync(target.fileno())
        staging.keep_selected()
        files = (RemoteFile(path, staging.collected_size(path), self._version) for path in ranges)
        return FileIndex(self._options.source, tuple(files))

    def _count(self, name: str, staging: Staging, fetch: Callable[[Sequence[RemoteFile]], None]) -> Mapping[str, int]:
        """The rows of the files of a split, or of as many of them as have the rows that are needed."""
        needed = [each.needed for each in self._slices if each.name == name]
        most = None if None in needed else max(each for each in needed if each is not None)
        counts: dict[str, int] = {}
        if most is None:
            fetch(self._splits[name])
        for file in self._splits[name]:
            if most is not None:
                if sum(counts.values()) >= most:
                    break
                fetch([file])
            with staging.open_collected(file.path) as opened:
                counts[file.path] = count_rows(opened, file.path)
        return counts

    def _refuse(self, fault: str) -> TransferError:
        return TransferError(f"SPLIT={self._options.split!r}: {self._options.shown} {fault}")
