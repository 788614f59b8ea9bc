"""What the recorder writes, as statements on a connection; each may be repeated and then changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, bindparam, delete, exists, select, update

from trainer.api.metric_curve import CURVE
from trainer.api.trainjob_status import State
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, mapping_at
from trainer.progress.curves import Curve
from trainer.progress.reported_parameters import with_more
from trainer.progress.samples import MetricId
from trainer.view.row import ENDS
from trainer_dashboard.history import schema
from trainer_dashboard.history.chunks import MERGED, chunk_of, curves_of, posted_curves_of
from trainer_dashboard.history.content import compressed, inflated, without_secrets
from trainer_dashboard.history.deliveries import due_row, save_due
from trainer_dashboard.history.related_objects import document_kind
from trainer_dashboard.history.statements import insert, put
from trainer_dashboard.history.training import row_of
from trainer_dashboard.history.trial import trial_without_secrets

EVENTS_LIMIT = 200
"""Events of one training that are kept, the newest."""
_AT_REST = ENDS | {State.SUSPENDED.value}
"""States in which the progress, with its last checkpoint, stays as it is."""
_OF_TRIALS = ("sweep_uid", "sweep", "trial", "assignment")
"""Columns of a trial, which it keeps also when its sweep is deleted without it."""
_AT_ONCE = 500
"""Values in one condition IN; databases allow some thousands."""


@dataclass(frozen=True, slots=True)
class Present:
    """What the database has of a training that was in the cluster when it was last recorded."""

    state: str
    creator: str


@dataclass(slots=True)
class Training:
    """One TrainJob to be written."""

    job: CachedObject
    jobset: CachedObject | None
    runtime: CachedObject | None
    creator: str
    deleted: float | None
    written: Mapping[str, str] = field(default_factory=dict)
    """What was last written of each document, to write it only when it has changed."""
    related: Sequence[Object] = ()
    """What else is rendered for it, where that was asked for."""
    notification: tuple[str, str] | None = None
    """Occasion and text of what is to be sent."""


@dataclass(frozen=True, slots=True)
class PreparedTraining:
    """The same as the database gets it, made before a transaction, for which others wait."""

    training: Training
    row: dict[str, Any]
    documents: Mapping[str, bytes]
    """Those that have changed, by kind."""
    written: Mapping[str, str]
    """See `Training.written`, once it is."""


@dataclass(frozen=True, slots=True)
class MetricProgress:
    """How far the log with the metrics of a training has been read."""

    run: int = 0
    pod: str = ""
    container: str = ""
    position: str = ""
    chunks: int = 0
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class NewSamples:
    """Samples of one training to be written, and how far its log has been read with them."""

    uid: str
    runs: Sequence[tuple[int, Mapping[MetricId, Curve]]]
    """Run by run; the last one is that of `progress`."""
    progress: MetricProgress
    posted: Mapping[MetricId, Curve] = field(default_factory=dict)
    """Samples of the run from the status of its TrainJob."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What its reporter has found that it was started with, where that is new."""


class PostedSample(NamedTuple):
    """The last sample of a metric that was taken from the status."""

    time: float
    step: float
    value: float


def present_trainings(connection: Connection, cluster: str, namespace: str | None) -> dict[str, Present]:
    """The trainings of a cluster that were there, by uid."""
    table = schema.TRAININGS.c
    query = select(table.uid, table.state, table.creator).where(table.cluster == cluster, table.deleted.is_(None))
    if namespace is not None:
        query = query.where(table.namespace == namespace)
    return {uid: Present(state, creator) for uid, state, creator in connection.execute(query)}


def newest_creation(connection: Connection, cluster: str) -> float | None:
    """When the newest training of a cluster was created; None where none was recorded."""
    table = schema.TRAININGS.c
    query = select(table.created).where(table.cluster == cluster).order_by(table.created.desc()).limit(1)
    newest: float | None = connection.scalar(query)
    return newest


def prepared(training: Training) -> PreparedTraining:
    """What is to be written of a TrainJob, without secrets and compressed: up to seconds of work for a processor."""
    job = training.job.decode()
    jobset, runtime = (each.decode() if each is not None else None for each in (training.jobset, training.runtime))
    row = row_of(job, jobset=jobset, runtime=runtime)
    objects = {"trainjob": trial_without_secrets(job), "jobset": jobset, "runtime": runtime}
    objects |= {document_kind(each): each for each in training.related}
    versions = {kind: _version_of(kind, obj, row["state"]) for kind, obj in objects.items() if obj is not None}
    changed = [kind for kind, version in versions.items() if version != training.written.get(kind)]
    documents = {kind: compressed(without_secrets(objects[kind] or {})) for kind in changed}
    return PreparedTraining(training, row, documents, {**training.written, **versions})


def save_trainings(
    connection: Connection, trainings: Sequence[PreparedTraining], *, cluster: str, now: float
) -> list[Mapping[str, str]]:
    """Insert or update rows, and the documents that have changed; returns what of each training is `written` now."""
    rows, documents, notifications = [], [], []
    forgotten = forgotten_of(connection, [each.row["uid"] for each in trainings])
    for each in trainings:
        training, uid = each.training, each.row["uid"]
        rows.append(
            each.row | {"cluster": cluster, "creator": training.creator, "deleted": training.deleted, "size": 0}
        )
        if uid not in forgotten:
            documents += [{"uid": uid, "kind": kind, "content": content} for kind, content in each.documents.items()]
        if training.notification is not None:
            notifications.append(due_row(uid, training.notification, now))
    _put_trainings(connection, rows)
    put(connection, schema.DOCUMENTS, documents)
    save_due(connection, schema.NOTIFICATIONS, notifications)
    return [each.written for each in trainings]


def _version_of(kind: str, obj: Mapping[str, Any], state: str) -> str:
    """What changes with the parts of an object that are worth a write: progress alone is not, while it trains."""
    metadata = mapping_at(obj, "metadata")
    if kind != "trainjob":
        return f"{metadata.get('uid')} {metadata.get('generation') or metadata.get('resourceVersion')}"
    status = mapping_at(obj, "status")
    kept = {name: value for name, value in status.items() if state in _AT_REST or name != "trainerStatus"}
    parts = {name: metadata.get(name) for name in ("labels", "annotations", "deletionTimestamp")}
    if state not in _AT_REST:
        parts["annotations"] = {k: v for k, v in mapping_at(metadata, "annotations").items() if k != CURVE}
    return hashlib.sha256(msgspec.json.encode([parts, obj.get("spec"), kept])).hexdigest()


def _put_trainings(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Update what is there, and insert the rest; what the row of the runtime said first stays."""
    if not rows:
        return
    table = schema.TRAININGS
    known = _known(connection, [row["uid"] for row in rows])
    new = [row for row in rows if row["uid"] not in known]
    if new:
        connection.execute(insert(connection, table).on_conflict_do_nothing(), new)
    fixed = {"uid", "cluster", "runtime_version", "creator", "forgotten", *_OF_TRIALS}
    names = [column.name for column in table.c if column.name not in fixed]
    # Of a row all that it names is written, whatever the statement says.
    changed = [{name: row[name] for name in names} | {"key": row["uid"]} for row in rows if row["uid"] in known]
    if changed:
        values: dict[str, Any] = {name: bindparam(name) for name in names}
        connection.execute(update(table).where(table.c.uid == bindparam("key")).values(values), changed)


def _known(connection: Connection, uids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(uids), _AT_ONCE):
        query = select(schema.TRAININGS.c.uid).where(schema.TRAININGS.c.uid.in_(uids[start : start + _AT_ONCE]))
        found.update(connection.scalars(query))
    return found


def forgotten_of(connection: Connection, uids: Sequence[str]) -> set[str]:
    """Those whose row alone is still kept; none is forgotten until the transaction ends."""
    found: set[str] = set()
    table = schema.TRAININGS.c
    for start in range(0, len(uids), _AT_ONCE):
        query = select(table.uid, table.forgotten).where(table.uid.in_(uids[start : start + _AT_ONCE]))
        rows = connection.execute(query.with_for_update(read=True))
        found.update(uid for uid, forgotten in rows if forgotten is not None)
    return found


def mark_deleted(connection: Connection, uids: Collection[str], now: float) -> None:
    """Say of trainings that they are gone, without having seen when."""
    table = schema.TRAININGS
    statement = update(table).where(table.c.uid == bindparam("key"), table.c.deleted.is_(None)).values(deleted=now)
    if uids:
        connection.execute(statement, [{"key": uid} for uid in uids])


def save_events(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Insert or update events, and drop the oldest of trainings that have too many."""
    forgotten = forgotten_of(connection, [*{row["uid"] for row in rows}])
    rows = [row for row in rows if row["uid"] not in forgotten]
    put(connection, schema.EVENTS, rows)
    table = schema.EVENTS
    for uid in {row["uid"] for row in rows}:
        newest = select(table.c.event).where(table.c.uid == uid).order_by(table.c.last.desc(), table.c.event)
        limit = connection.scalars(newest.offset(EVENTS_LIMIT)).all()
        for start in range(0, len(limit), _AT_ONCE):
            old = table.c.event.in_(limit[start : start + _AT_ONCE])
            connection.execute(delete(table).where(table.c.uid == uid, old))


def has_log_tail(connection: Connection, uid: str, node: str, container: str, run: str) -> bool:
    """Whether these last lines have been kept before, also if they are forgotten by now."""
    table = schema.LOG_TAILS.c
    is_it = (table.uid == uid) & (table.node == node) & (table.container == container) & (table.run == run)
    return bool(connection.scalar(select(exists().where(is_it)))) or bool(forgotten_of(connection, [uid]))


def metric_progress(connection: Connection, uid: str) -> MetricProgress:
    """How far the log of a training has been read."""
    table = schema.METRIC_LOGS.c
    columns = (table.run, table.pod, table.container, table.position, table.chunks, table.is_done)
    found = connection.execute(select(*columns).where(table.uid == uid)).one_or_none()
    progress = MetricProgress(*found) if found is not None else MetricProgress()
    return replace(progress, is_done=True) if forgotten_of(connection, [uid]) else progress


def save_samples(connection: Connection, news: Sequence[NewSamples]) -> None:
    """Insert the chunks of the last run, without those of earlier ones, and say how far the log has been read."""
    chunks, logs, full = [], [], []
    forgotten = forgotten_of(connection, [new.uid for new in news])
    for new in news:
        progress = new.progress
        number = progress.chunks - len(new.runs)
        for run, curves in new.runs:
            if run == progress.run and new.uid not in forgotten:
                chunks.append({"uid": new.uid, "run": run, "number": number, "content": chunk_of(curves)})
                if (number + 1) % MERGED == 0:
                    full.append((new.uid, run, number))
            number += 1
        if progress.is_done:
            full.append((new.uid, progress.run, 0))
        logs.append(
            {
                "uid": new.uid,
                "run": progress.run,
                "pod": progress.pod,
                "container": progress.container,
                "position": progress.position,
                "chunks": progress.chunks,
                "is_done": progress.is_done,
            }
        )
    if chunks:
        connection.execute(insert(connection, schema.METRIC_CHUNKS).on_conflict_do_nothing(), chunks)
    put(connection, schema.METRIC_LOGS, logs)
    for new in news:
        if new.posted and new.uid not in forgotten:
            _put_posted(connection, new.uid, new.progress.run, new.posted, is_last=new.progress.is_done)
    _put_parameters(
        connection, {new.uid: new.parameters for new in news if new.parameters and new.uid not in forgotten}
    )
    _drop_earlier_runs(connection, [(new.uid, new.progress.run) for new in news if new.progress.run > 1])
    for uid, run, number in full:
        # The many small ones often, all of them seldom and at the end: each sample is written a few times.
        is_all = (number + 1) % MERGED**2 == 0 or number == 0
        _merge(connection, uid, run, 0 if is_all else number - MERGED + 1)


def _put_parameters(connection: Connection, by_uid: Mapping[str, Mapping[str, str]]) -> None:
    """Add them to those that are known: a recorder that has gone on in a log has not read its beginning."""
    table = schema.DOCUMENTS
    rows = []
    for uid, parameters in by_uid.items():
        query = select(table.c.content).where(table.c.uid == uid, table.c.kind == schema.PARAMETERS)
        content = connection.scalar(query)
        known = mapping_at(inflated(content), "parameters") if content is not None else {}
        kept = without_secrets({"parameters": with_more(known, parameters)})
        rows.append({"uid": uid, "kind": schema.PARAMETERS, "content": compressed(kept)})
    put(connection, table, rows)


def last_posted(connection: Connection, uid: str, run: int) -> dict[MetricId, PostedSample]:
    """The last samples of a run that were taken from the status."""
    table = schema.METRIC_CHUNKS
    curves = posted_curves_of(connection.scalars(_posted(select(table.c.content), uid, run)))
    return {
        metric: PostedSample(curve.times[-1], curve.steps[-1], curve.values[-1])
        for metric, curve in curves.by_metric.items()
    }


def _posted(query: Select[Any], uid: str, run: int) -> Select[Any]:
    """The chunks of samples from the status, whose numbers go down from -1: those of the log are counted by it."""
    table = schema.METRIC_CHUNKS.c
    return query.where(table.uid == uid, table.run == run, table.number < 0).order_by(table.number.desc())


def _put_posted(connection: Connection, uid: str, run: int, curves: Mapping[MetricId, Curve], *, is_last: bool) -> None:
    """Add a chunk, and make one of them when they are many; one that comes twice is left out when they are read."""
    table = schema.METRIC_CHUNKS
    numbers = connection.scalars(_posted(select(table.c.number), uid, run)).all()
    chunk = {"uid": uid, "run": run, "number": min(numbers, default=0) - 1, "content": chunk_of(curves)}
    connection.execute(insert(connection, table), [chunk])
    if len(numbers) + 1 >= MERGED or is_last:
        content = chunk_of(posted_curves_of(connection.scalars(_posted(select(table.c.content), uid, run))).by_metric)
        connection.execute(delete(table).where(table.c.uid == uid, table.c.run == run, table.c.number < 0))
        connection.execute(insert(connection, table), [chunk | {"content": content}])


def _drop_earlier_runs(connection: Connection, runs: Sequence[tuple[str, int]]) -> None:
    table = schema.METRIC_CHUNKS
    statement = delete(table).where(table.c.uid == bindparam("key"), table.c.run < bindparam("last"))
    if runs:
        connection.execute(statement, [{"key": uid, "last": run} for uid, run in runs])


def _merge(connection: Connection, uid: str, run: int, first: int) -> None:
    """Make one chunk of those from a number on."""
    table = schema.METRIC_CHUNKS
    are_they = (table.c.uid == uid) & (table.c.run == run) & (table.c.number >= first)
    found = connection.execute(select(table.c.number, table.c.content).where(are_they).order_by(table.c.number)).all()
    if len(found) < 2:
        return
    content = chunk_of(curves_of(chunk for _, chunk in found).by_metric)
    connection.execute(delete(table).where(are_they))
    put(connection, table, [{"uid": uid, "run": run, "number": found[-1].number, "content": content}])
