"""Samples in chunks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from tests.history.test_queries import row
from trainer.history.chunks import MERGED
from trainer.history.queries import History
from trainer.history.records import MetricProgress, NewSamples, metric_progress, put, save_samples
from trainer.history.schema import METRIC_CHUNKS, TRAININGS
from trainer.progress.curves import Curves
from trainer.progress.samples import MetricId

if TYPE_CHECKING:
    from trainer.history.database import Database

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
