"""The tables of the history; `migrations` has the way to them from each earlier version."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

HEAD = "0004"
"""The version of the tables, that of the newest migration.

`0006_0004` is version 6 that programs of version 4 and later read and write: it has only added tables, and columns that
may be NULL or have a default of the server. Programs of the minor version before have to be among them.
"""

METADATA = MetaData()


def number(version: str) -> str:
    """The number of a version of the tables."""
    return version.partition("_")[0]


def oldest_user(version: str) -> str:
    """The number of the oldest version whose programs may use such a database."""
    return version.partition("_")[2] or version


def _index_of_trials(name: str, first: str, *others: str) -> Index:
    """Without the trainings that are no trials, which are most."""
    condition = text(f"{first} IS NOT NULL")
    return Index(name, first, *others, sqlite_where=condition, postgresql_where=condition)


TRAININGS = Table(
    "trainings",
    METADATA,
    Column("uid", Text, primary_key=True),
    Column("cluster", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("deleted", Double),
    Column("forgotten", Double),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("runtime_kind", Text, nullable=False),
    Column("runtime", Text, nullable=False),
    Column("runtime_version", Text, nullable=False),
    Column("image", Text, nullable=False),
    Column("nodes", Integer),
    Column("creator", Text, nullable=False),
    Column("progress", Integer),
    Column("metrics", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sweep_uid", Text),
    Column("sweep", Text),
    Column("trial", Integer),
    Column("assignment", Text),
    Index("trainings_by_time", "created", "uid"),
    Index("trainings_by_name", "name", "namespace", "created", "uid"),
    Index("trainings_by_namespace", "namespace", "created", "uid"),
    Index("trainings_by_state", "state", "created", "uid"),
    Index("trainings_by_namespace_and_state", "namespace", "state", "created", "uid"),
    Index("trainings_by_runtime", "runtime", "created", "uid"),
    Index("trainings_present", "cluster", "deleted"),
    Index("trainings_by_end", text("coalesce(ended, deleted)"), "uid"),
    _index_of_trials("trainings_by_sweep", "sweep", "created", "uid"),
    _index_of_trials("trainings_of_sweep", "sweep_uid", "trial", "uid"),
)
"""One row for each TrainJob, by its uid; times are seconds since 1970, and `size` counts the bytes of all its rows.

Of a TrainJob that is in the cluster for longer than the history goes back, the row stays. `forgotten` says when the
rest went, which is then not recorded again. Of a trial, `sweep_uid` and `sweep` are uid and name of its
OptimizationJob, and `assignment` are its parameters: JSON, an object of texts.
"""


def _training() -> Column[str]:
    return Column("uid", Text, ForeignKey("trainings.uid", ondelete="CASCADE"), primary_key=True)


DOCUMENTS = Table(
    "documents",
    METADATA,
    _training(),
    Column("kind", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""Compressed JSON without secrets: the TrainJob, its runtime, its JobSet, what else was rendered, and what the reporter
has found that the training was started with."""

PARAMETERS: Final = "parameters"
"""The kind of the latter; those of objects are their names, such as `trainjob`."""

EVENTS = Table(
    "events",
    METADATA,
    _training(),
    Column("event", Text, primary_key=True),
    Column("last", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("message", Text, nullable=False),
)
"""Events about a TrainJob and what was made for it; `last` is when one was seen last."""

LOG_TAILS = Table(
    "log_tails",
    METADATA,
    _training(),
    Column("node", Text, primary_key=True),
    Column("container", Text, primary_key=True),
    Column("pod", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("is_training", Boolean, nullable=False),
    Column("is_primary", Boolean, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
"""The last lines of each container's log, compressed; `run` is the pod, the restarts and whether it had ended."""

METRIC_LOGS = Table(
    "metric_logs",
    METADATA,
    _training(),
    Column("run", Integer, nullable=False),
    Column("pod", Text, nullable=False),
    Column("container", Text, nullable=False),
    Column("position", Text, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("is_done", Boolean, nullable=False),
)
"""How far the log with the metrics has been read. `run` counts pods, and `chunks` all that were ever written."""

METRIC_CHUNKS = Table(
    "metric_chunks",
    METADATA,
    _training(),
    Column("run", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
"""Samples of metrics, as `chunks` encodes them: of the log by `number`, from 0 up; of the status from -1 down."""

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    _training(),
    Column("occasion", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False),
    Index("notifications_due", "state", "due"),
)
"""What is, or was, to be sent by webhook; the row stays, so that nothing is sent twice."""

SWEEPS = Table(
    "sweeps",
    METADATA,
    Column("uid", Text, primary_key=True),
    Column("cluster", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("deleted", Double),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("algorithm", Text, nullable=False),
    *(Column(name, Integer) for name in ("trials", "running", "succeeded", "failed", "pruned")),
    Column("best", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("sweeps_by_time", "created", "uid"),
    Index("sweeps_by_name", "name", "namespace", "created", "uid"),
    Index("sweeps_by_namespace", "namespace", "created", "uid"),
    Index("sweeps_present", "cluster", "deleted"),
)
"""One row for each OptimizationJob: `trials` is how many it asks for, `best` the name of the TrainJob with the best
`value`, and `content` the object as documents of trainings are kept."""

SWEEP_NOTIFICATIONS = Table(
    "sweep_notifications",
    METADATA,
    Column("uid", Text, ForeignKey("sweeps.uid", ondelete="CASCADE"), primary_key=True),
    Column("occasion", Text, primary_key=True),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False),
    Index("sweep_notifications_due", "state", "due"),
)
"""The same as `NOTIFICATIONS`, about sweeps."""
