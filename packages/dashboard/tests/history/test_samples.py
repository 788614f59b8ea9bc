"""Samples in chunks."""

from __future__ import annotations

import zlib
from dataclasses import replace
from functools import partial

import msgspec
import pytest
from sqlalchemy import func, select

from packages.dashboard.tests.history.test_queries import row
from trainer.kube.logs.redaction import REDACTED
from trainer.progress.curves import SAMPLES_LIMIT, Curves
from trainer.progress.samples import MetricId
from trainer_dashboard.history.chunks import MERGED, chunk_of, curves_of
from trainer_dashboard.history.content import compressed
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.queries import History
from trainer_dashboard.history.records import (
    MetricProgress,
    NewSamples,
    last_posted,
    metric_progress,
    save_samples,
)
from trainer_dashboard.history.schema import METRIC_CHUNKS, TRAININGS
from trainer_dashboard.history.statements import put

LOSS, QUALITY = MetricId(is_eval=False, name="loss"), MetricId(is_eval=True, name="\u0000ä")


def new(number: int, *, run: int = 1, is_done: bool = False) -> NewSamples:
    curves = Curves()
    curves.add(LOSS, 1767225600.25 + number, number, number / 4)
    curves.add(QUALITY, 1767225600.25 + number, -1, -number)
    progress = MetricProgress(run, "pod", "node", f"after {number}", number + 1, is_done)
    return NewSamples("a", [(run, curves.drain())], progress)


def chunks(database: Database) -> int:
    count = select(func.count()).select_from(METRIC_CHUNKS)
    return database.read(lambda connection: connection.execute(count).scalar_one())


def test_many_chunks(database: Database) -> None:
    """Small chunks become larger ones, and nothing of them is lost, doubled or put in another order."""
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    number = 2 * MERGED + 5
    for each in range(number):
        database.write(partial(save_samples, news=[new(each)]))
    assert chunks(database) == 2 + 5
    curves = History(database).curves("a").by_metric
    assert list(curves[LOSS].steps) == list(range(number))
    assert list(curves[QUALITY].values) == [-float(each) for each in range(number)]
    assert curves[LOSS].times[1] == 1767225601.25
    database.write(partial(save_samples, news=[new(number, is_done=True)]))
    assert chunks(database) == 1
    assert len(History(database).curves("a").by_metric[LOSS].steps) == number + 1


def test_parameters(database: Database) -> None:
    """What a reporter has found is kept without secrets, also what comes later, and is none of the objects."""
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    for found in ({"lr": "0.1", "seed": "1"}, {}, {"seed": "2", "db": "postgres://u:hidden@h"}):
        database.write(partial(save_samples, news=[replace(new(0), parameters=found)]))
    kept = History(database).parameters("a")
    assert kept == {"lr": "0.1", "seed": "2", "db": f"postgres://u:{REDACTED}@h"}
    assert History(database).objects("a") == []
    assert History(database).parameters("b") == {}


def test_another_run(database: Database) -> None:
    """The chunks of earlier runs go when the log of another one is read, also those that come with it."""
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    database.write(partial(save_samples, news=[new(0), new(1)]))
    late, last = new(2), new(3, run=2)
    both = NewSamples("a", [*late.runs, *last.runs], last.progress)
    for _ in range(2):
        database.write(partial(save_samples, news=[both]))
        assert chunks(database) == 1
        assert list(History(database).curves("a").by_metric[LOSS].steps) == [3]


def test_repeated(database: Database) -> None:
    """A transaction that is repeated because its answer was lost changes nothing."""
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    for _ in range(2):
        database.write(partial(save_samples, news=[new(0)]))
    assert list(History(database).curves("a").by_metric[LOSS].steps) == [0]
    progress = database.read(partial(metric_progress, uid="a"))
    assert progress == MetricProgress(1, "pod", "node", "after 0", 1)


def piece(start: int, end: int, *names: str) -> Curves:
    """Samples of some metrics at steps."""
    curves = Curves()
    for step in range(start, end):
        for name in names:
            curves.add(MetricId(is_eval=False, name=name), 1767225600 + step / 3, step, 1 / (step + 1))
    return curves


def test_long_training(database: Database) -> None:
    """All 100,000 samples of each of five metrics are there, number by number."""
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    names, pieces = ("a", "b", "c", "d", "e"), 10
    size = SAMPLES_LIMIT // pieces
    for number in range(pieces):
        curves = piece(number * size, (number + 1) * size, *names).drain()
        progress = MetricProgress(1, "pod", "node", "", number + 1, number == pieces - 1)
        database.write(partial(save_samples, news=[NewSamples("a", [(1, curves)], progress)]))
    assert chunks(database) == 1
    whole, found = piece(0, SAMPLES_LIMIT, "a").by_metric, History(database).curves("a").by_metric
    (expected,) = whole.values()
    assert [metric.name for metric in found] == [*names]
    assert all(curve == expected for curve in found.values())


def test_longer_training() -> None:
    """Of more samples than are stored every second one goes, and the first and the last step stay."""
    half = SAMPLES_LIMIT // 2 + 1
    parts = [chunk_of(piece(start, start + half, "a").by_metric) for start in (0, half)]
    (curve,) = curves_of(parts).by_metric.values()
    assert SAMPLES_LIMIT // 2 < len(curve.steps) <= SAMPLES_LIMIT
    assert curve.steps[0] <= 1
    assert curve.steps[-1] == 2 * half - 1
    assert max(after - before for before, after in zip(curve.steps, curve.steps[1:], strict=False)) == 2


def test_epochs() -> None:
    """Epochs of a training without steps are kept, also over several chunks."""
    parts = [Curves(), Curves()]
    for epoch, part in enumerate(parts):
        part.add(LOSS, epoch, -1, 1, epoch)
    (curve,) = curves_of(chunk_of(part.by_metric) for part in parts).by_metric.values()
    assert list(curve.samples()) == [(0, -1, 0, 1), (1, -1, 1, 1)]


def test_chunk_of_before() -> None:
    """A chunk that an earlier recorder has written as JSON is read like any other."""
    old = compressed([[True, "\u0000ä", [1.5, 2.5], [1.0, -1.0], [0.25, 0.5]]])
    (curve,) = curves_of([old]).by_metric.values()
    assert list(curve.samples()) == [(1.5, 1, -1, 0.25), (2.5, -1, -1, 0.5)]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\x00", id="other type"),
        pytest.param(msgspec.msgpack.encode([[False, "a", b"1234567", b"", b""]]), id="part of a number"),
        pytest.param(msgspec.msgpack.encode([[False, "a", b"12345678", b"", b""]]), id="counts differ"),
    ],
)
def test_damaged_chunk(content: bytes) -> None:
    """A damaged chunk is an error that says so."""
    with pytest.raises(ValueError, match=r"damaged|Expected"):
        curves_of([zlib.compress(content)])


def test_posted(database: Database) -> None:
    """Samples of the status lie beside those of the log in few chunks; a write that is repeated doubles nothing."""
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    number = MERGED + 3
    for each in range(number):
        samples = NewSamples("a", [], MetricProgress(1, "pod", "node"), piece(each, each + 1, "posted").by_metric)
        for _ in range(2):
            database.write(partial(save_samples, news=[samples]))
    database.write(partial(save_samples, news=[new(0)]))
    assert chunks(database) < MERGED
    curves = History(database).curves("a").by_metric
    assert list(curves[MetricId(is_eval=False, name="posted")].steps) == list(range(number))
    assert list(curves[LOSS].steps) == [0]
    last = database.read(partial(last_posted, uid="a", run=1))
    assert [sample.step for sample in last.values()] == [number - 1]
    database.write(partial(save_samples, news=[new(1, run=2)]))
    assert set(History(database).curves("a").by_metric) == {LOSS, QUALITY}
    assert chunks(database) == 1
