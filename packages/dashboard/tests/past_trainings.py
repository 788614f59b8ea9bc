"""Trainings of a history, as a recorder has left them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object
from trainer.progress.curves import Curves
from trainer.progress.samples import MetricId
from trainer_dashboard.history.chunks import chunk_of
from trainer_dashboard.history.content import compressed
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.schema import DOCUMENTS, EVENTS, LOG_TAILS, METRIC_CHUNKS, METRIC_LOGS, TRAININGS
from trainer_dashboard.history.statements import put
from trainer_dashboard.history.sweep_records import prepared_sweep, save_sweeps

CLUSTER = "cluster-uid"
KUBE_SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": CLUSTER}}
BEGIN = 1767225600.0
"""2026-01-01T00:00:00Z."""


def past_training(
    uid: str, ended: float | None = 60.0, *, deleted: float | None = None, name: str = "demo", **columns: Any
) -> dict[str, Any]:
    """A row; its times are seconds after `BEGIN`."""
    row: dict[str, Any] = {column.name: None if column.nullable else "" for column in TRAININGS.c}
    times = {"created": 0.0, "started": 1.0, "ended": ended, "deleted": deleted}
    row |= {"uid": uid, "cluster": CLUSTER, "namespace": "team", "name": name, "state": "Complete", "size": 0}
    row |= {"metrics": "[]", "runtime": "plain", "runtime_kind": "ClusterTrainingRuntime"}
    return row | {key: None if value is None else BEGIN + value for key, value in times.items()} | columns


def save(database: Database, *trainings: dict[str, Any]) -> None:
    """Write rows of trainings."""
    _put(database, TRAININGS, trainings)


def save_sweep(database: Database, obj: Object, *, cluster: str = CLUSTER, deleted: float | None = None) -> None:
    """Write an OptimizationJob; `deleted` is seconds after `BEGIN`."""
    gone = None if deleted is None else BEGIN + deleted
    prepared = prepared_sweep(CachedObject.of(obj), gone, None)
    database.write(lambda connection: save_sweeps(connection, [prepared], cluster=cluster, now=0))


def save_documents(database: Database, uid: str, **documents: Object) -> None:
    """Write objects of a training: `trainjob`, `jobset` or `runtime`."""
    rows = [{"uid": uid, "kind": kind, "content": compressed(obj)} for kind, obj in documents.items()]
    _put(database, DOCUMENTS, rows)


def save_samples(database: Database, uid: str, values: Sequence[float], name: str = "loss", number: int = 1) -> None:
    """Write the samples of a metric, as a chunk with this number."""
    curves = Curves()
    for step, value in enumerate(values):
        curves.add(MetricId(is_eval=False, name=name), BEGIN + step, step, value)
    log = {"run": 1, "pod": "p", "container": "node", "position": "", "chunks": 1, "is_done": True}
    _put(database, METRIC_LOGS, [{"uid": uid} | log])
    _put(database, METRIC_CHUNKS, [{"uid": uid, "run": 1, "number": number, "content": chunk_of(curves.by_metric)}])


def save_log(database: Database, uid: str, node: str, *lines: str, container: str = "node") -> None:
    """Write the last lines of a node."""
    fixed = {"pod": f"demo-{node}", "run": "1", "is_training": container == "node", "is_primary": False}
    content = compressed([f"2026-01-01T00:00:0{number}Z {line}" for number, line in enumerate(lines)])
    _put(database, LOG_TAILS, [{"uid": uid, "node": node, "container": container, "content": content} | fixed])


def save_event(database: Database, uid: str, reason: str, message: str = "") -> None:
    """Write an event."""
    fixed = {"event": reason, "last": "2026-01-01T00:00:00Z", "type": "Normal", "object": "Pod demo-node-0"}
    _put(database, EVENTS, [{"uid": uid, "reason": reason, "message": message} | fixed])


def _put(database: Database, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    database.write(lambda connection: put(connection, table, [dict(row) for row in rows]))
