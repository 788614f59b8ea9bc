"""`trainer history export`: the history as a table for other programs."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.logs.logs import parse_duration
from trainer.kube.clock import SystemClock
from trainer_dashboard.commands.history_database import DatabaseUrl, open_history
from trainer_dashboard.commands.past import past_object
from trainer_dashboard.history.queries import Filter, History, TrainingRecord, only

_FORMULA = re.compile(r"""(^|[;\t\r\n])(["'\s]*)(?=[-=+@\uff0b\uff0d\uff1d\uff20])|^(?=[\t\r\n])""")
"""Where a spreadsheet takes a text that a tenant has chosen for a formula, also one whose cells end with semicolons."""


class ExportFormat(StrEnum):
    """Values of `--format`."""

    CSV = "csv"
    PARQUET = "parquet"


class ExportedTable(StrEnum):
    """Values of `--table`."""

    TRAININGS = "trainings"
    METRICS = "metrics"


def export(
    *,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="File that is written; CSV: standard output.")
    ] = None,
    form: Annotated[ExportFormat, typer.Option("--format", help="Format of the file.")] = ExportFormat.CSV,
    table: Annotated[
        ExportedTable, typer.Option(help="One row for each training, or for each sample of its metrics.")
    ] = ExportedTable.TRAININGS,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only of this namespace.")] = "",
    since: Annotated[str | None, typer.Option(metavar="30d", help="Only created within this time.")] = None,
    database: DatabaseUrl = None,
) -> None:
    """Export trainings, or the samples of their metrics, as CSV or Parquet, the newest training first."""
    if form is ExportFormat.PARQUET and file is None:
        raise BadInputError("--file: name the file; Parquet is not for terminals")
    opened = open_history(database)
    start = None if since is None else (SystemClock().now() - parse_duration(since)).timestamp()
    batches = _batches(opened, table, Filter(namespaces=only(namespace), since=start))
    if form is ExportFormat.PARQUET and file is not None:
        _write_parquet(file, table, batches)
    elif file is None:
        _write_csv(sys.stdout, table, batches)
    else:
        with file.open("w", newline="", encoding="utf-8") as target:
            _write_csv(target, table, batches)


_COLUMNS: dict[ExportedTable, dict[str, str]] = {
    ExportedTable.TRAININGS: {
        **dict.fromkeys(("uid", "cluster", "namespace", "name", "state", "reason", "message"), "string"),
        **dict.fromkeys(("created", "started", "ended", "deleted"), "string"),
        "seconds": "float64",
        **dict.fromkeys(("runtime_kind", "runtime", "runtime_version", "image"), "string"),
        "nodes": "int32",
        "creator": "string",
        "progress": "int32",
        "metrics": "string",
        "sweep": "string",
        "trial": "int32",
        "parameters": "string",
    },
    ExportedTable.METRICS: {
        **dict.fromkeys(("uid", "namespace", "name", "metric", "kind"), "string"),
        **dict.fromkeys(("time", "step", "value", "epoch"), "float64"),
    },
}
"""Names of columns, with their types in Parquet."""


def _batches(history: History, table: ExportedTable, which: Filter) -> Iterator[list[Sequence[Any]]]:
    for page in history.pages(which):
        if table is ExportedTable.TRAININGS:
            yield [_training(record) for record in page]
        else:
            for record in page:
                yield list(_samples(history, record))


def _training(record: TrainingRecord) -> Sequence[Any]:
    shown = past_object(record)
    metrics = {f"{'eval ' if metric.is_eval else ''}{metric.name}": metric.value for metric in record.metrics}
    runtime = shown["runtime"]
    values = shown | {
        "seconds": record.seconds,
        "runtime_kind": runtime["kind"],
        "runtime": runtime["name"],
        "runtime_version": runtime["version"],
        "metrics": json.dumps(metrics, ensure_ascii=False),
        "sweep": record.sweep,
        "trial": record.trial,
        "parameters": json.dumps(record.assignment, ensure_ascii=False) if record.sweep is not None else None,
    }
    return [values[name] for name in _COLUMNS[ExportedTable.TRAININGS]]


def _samples(history: History, record: TrainingRecord) -> Iterator[Sequence[Any]]:
    for metric, curve in history.curves(record.uid).by_metric.items():
        origin = record.uid, record.namespace, record.name, metric.name, metric.kind
        for time, step, epoch, value in curve.samples():
            yield *origin, time, None if step < 0 else step, value, None if epoch < 0 else epoch


def _write_csv(target: Any, table: ExportedTable, batches: Iterator[list[Sequence[Any]]]) -> None:
    rows = csv.writer(target, lineterminator="\n")
    rows.writerow(_COLUMNS[table])
    for batch in batches:
        rows.writerows([_cell(value) for value in row] for row in batch)


def _cell(value: Any) -> Any:
    return _FORMULA.sub(r"\1\2'", value) if isinstance(value, str) else value


def _write_parquet(file: Path, table: ExportedTable, batches: Iterator[list[Sequence[Any]]]) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415 - of an extra
        from pyarrow import parquet  # noqa: PLC0415 - likewise
    except ModuleNotFoundError:
        raise CommandError(
            "Parquet needs pyarrow, which is not installed: pip install 'trainer-operator[parquet]'"
        ) from None
    columns = _COLUMNS[table]
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in batches:
            values = zip(*batch, strict=True) if batch else [()] * len(columns)
            arrays = [pa.array(each, type=kind) for each, kind in zip(values, schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
