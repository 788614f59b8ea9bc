"""Rows of one file: how many there are, and a copy with some of them.

Parquet files are read by pyarrow, which keeps their schema with what the library datasets has noted in it, and reads no
more than the rows. Text files are read line by line, as bytes that are copied as they are.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import BinaryIO, cast

from pyarrow.parquet import ParquetFile

from trainer_initializers.errors import TransferError

_BATCH = 1024
"""Rows of a Parquet file that are held at most."""
_BATCH_SIZE = 4 << 20
"""Bytes that they have about; Parquet readers and writers hold them several times."""
_PIECE = 1 << 20
"""Bytes of a line that are held."""
_HEADER = -1
_TABLES = (".csv", ".tsv")
_LINES = (".jsonl", ".ndjson", ".json")
KINDS = ".parquet, .csv, .tsv, .jsonl, .ndjson and .json (with an object in each line), and these as .gz"


def has_rows(path: str) -> bool:
    """Whether rows of a file of this name can be selected."""
    return path.lower().endswith(".parquet") or path.lower().removesuffix(".gz").endswith((*_TABLES, *_LINES))


def count_rows(opened: BinaryIO, path: str) -> int:
    """How many rows a file has.

    Raises:
        TransferError: it is none of those that its name says.
    """
    if _is_parquet(path):
        with _parquet(opened, path) as file:
            return int(file.metadata.num_rows)
    count = 0
    for row, _ in _records(opened, path):
        count = row + 1
    return count


def copy_rows(opened: BinaryIO, target: BinaryIO, path: str, ranges: Sequence[tuple[int, int]]) -> None:
    """Write the rows of the ranges, in their order, into another file of the same kind."""
    if _is_parquet(path):
        _copy_parquet(opened, target, path, ranges)
        return
    with _compressed(target, path) as written:
        for number, (start, stop) in enumerate(ranges):
            last = b""
            for row, piece in _records(opened, path):
                if row >= stop:
                    break
                if row >= start or (row == _HEADER and not number):
                    written.write(last := piece)
            if not last.endswith(b"\n"):
                written.write(b"\n")


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


@contextmanager
def _parquet(opened: BinaryIO, path: str) -> Iterator[ParquetFile]:
    try:
        import pyarrow as pa  # noqa: PLC0415 it takes half a second, and most transfers need it not
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise TransferError(f"SPLIT needs the package {error.name}: install trainer-operator[initializers]") from error
    try:
        opened.seek(0)
        yield ParquetFile(opened, pre_buffer=False, buffer_size=_PIECE)  # no column whole
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the disk
            raise
        raise TransferError(f"SPLIT: {path} cannot be read as Parquet: {error}") from error


def _copy_parquet(opened: BinaryIO, target: BinaryIO, path: str, ranges: Sequence[tuple[int, int]]) -> None:
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    with _parquet(opened, path) as file, ParquetWriter(target, file.schema_arrow) as writer:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        for start, stop in ranges:
            first = 0
            for number, group in enumerate(groups):
                at, first = first, first + group.num_rows
                if first <= start or at >= stop:
                    continue
                rows = max(1, min(_BATCH, _BATCH_SIZE * group.num_rows // max(group.total_byte_size, 1)))
                for batch in file.iter_batches(rows, row_groups=[number]):
                    low, high = max(start - at, 0), min(stop - at, batch.num_rows)
                    if low < high:
                        writer.write_batch(batch.slice(low, high - low))
                    at += batch.num_rows


def _records(opened: BinaryIO, path: str) -> Iterator[tuple[int, bytes]]:
    """The pieces of the lines of a file, each with the number of its row; the header of a table has _HEADER.

    Empty lines are no rows. A line break in quotes does not end the row of a table.
    """
    name = path.lower().removesuffix(".gz")
    is_table = name.endswith(_TABLES)
    row, quotes, is_inside = _HEADER if is_table else 0, 0, False
    opened.seek(0)
    source = gzip.GzipFile(fileobj=opened) if path.lower().endswith(".gz") else opened
    try:
        while piece := source.readline(_PIECE):
            if not is_inside and not piece.strip():
                continue
            if row == 0 and not is_inside and name.endswith(".json"):
                _check_object(piece, path)
            yield row, piece
            quotes += piece.count(b'"') if is_table else 0
            is_inside = not piece.endswith(b"\n") or quotes % 2 == 1
            row += 0 if is_inside else 1
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TransferError(f"SPLIT: {path} cannot be read: {error}") from error


def _check_object(piece: bytes, path: str) -> None:
    """Refuse a file that is one JSON document, in lines that are none."""
    try:
        is_object = len(piece) == _PIECE or isinstance(json.loads(piece), dict)
    except (ValueError, RecursionError):
        is_object = False
    if not is_object:
        raise TransferError(
            f"SPLIT: {path} has no JSON object in each line, so that no rows can be selected: convert it to JSON Lines "
            "or Parquet, or leave out SPLIT"
        )


def _compressed(target: BinaryIO, path: str) -> AbstractContextManager[BinaryIO]:
    if path.lower().endswith(".gz"):
        return cast("AbstractContextManager[BinaryIO]", gzip.GzipFile(fileobj=target, mode="wb", mtime=0))
    return nullcontext(target)
