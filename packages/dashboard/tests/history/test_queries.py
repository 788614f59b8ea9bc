"""Lists, pages and references."""

from __future__ import annotations

from typing import Any

import pytest

from trainer_dashboard.history.content import compressed
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.queries import Cursor, Filter, History, LoggedContainer, only
from trainer_dashboard.history.schema import LOG_TAILS, TRAININGS
from trainer_dashboard.history.statements import put


def row(uid: str, created: float, name: str = "demo", **columns: Any) -> dict[str, Any]:
    texts = {column.name: "" for column in TRAININGS.c if not column.nullable and column.name != "size"}
    numbers = {column.name: None for column in TRAININGS.c if column.nullable}
    fixed = {"uid": uid, "created": created, "name": name, "namespace": "a", "state": "Complete", "metrics": "[]"}
    return texts | numbers | fixed | {"size": 0} | columns


@pytest.fixture
def history(database: Database) -> History:
    rows = [row(f"{number:08x}-uid", float(number // 2), f"job-{number % 3}") for number in range(10)]
    rows.append(row("f0000000-b", 3.5, "job-0", namespace="b", state="Failed", runtime="torch"))
    database.write(lambda connection: put(connection, TRAININGS, rows))
    return History(database)


def test_pages(history: History) -> None:
    """Pages follow each other without gaps and repetitions, also between trainings of one time, the newest first."""
    pages = list(history.pages(Filter(), size=3))
    assert [len(page) for page in pages] == [3, 3, 3, 2]
    listed = [Cursor(record.created, record.uid) for page in pages for record in page]
    assert listed == sorted(listed, reverse=True)
    assert len(set(listed)) == 11


@pytest.mark.parametrize(
    ("which", "number"),
    [
        pytest.param(Filter(), 11, id="all"),
        pytest.param(Filter(namespaces=only("a"), name="job-0"), 4, id="namespace and name"),
        pytest.param(Filter(runtime="torch"), 1, id="runtime"),
        pytest.param(Filter(since=4.0), 2, id="since"),
        pytest.param(Filter(name="'; DROP TABLE trainings; --"), 0, id="hostile"),
    ],
)
def test_filters(history: History, which: Filter, number: int) -> None:
    """Filters select, and combine."""
    assert len(history.trainings(which)) == number


@pytest.mark.parametrize("metrics", ["nonsense", '[["loss"]]', "{}"])
def test_damaged_metrics(history: History, database: Database, metrics: str) -> None:
    """A row with damaged metrics is listed without them, and keeps no other from being listed."""
    damaged = row("damaged", 9.0, metrics=metrics)
    database.write(lambda connection: put(connection, TRAININGS, [damaged]))
    listed = history.trainings()
    assert len(listed) == 12
    assert listed[0].metrics == ()


@pytest.mark.parametrize(
    ("reference", "uid"),
    [
        pytest.param("job-0", "00000009-uid", id="newest of a name"),
        pytest.param("b/job-0", "f0000000-b", id="of a namespace"),
        pytest.param("f00000", "f0000000-b", id="beginning of a uid"),
    ],
)
def test_reference(history: History, reference: str, uid: str) -> None:
    """A training is found by name, namespace and name, or by the beginning of its uid."""
    assert history.training(reference).uid == uid


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        pytest.param("nothing", "has no training nothing: name one", id="unknown"),
        pytest.param("c/job-0", "has no training c/job-0", id="other namespace"),
        pytest.param("000000", "several trainings have a uid that begins with 000000", id="ambiguous"),
        pytest.param("0", "has no training 0", id="too short"),
        pytest.param("%%%%%%", "has no training", id="pattern"),
    ],
)
def test_no_reference(history: History, reference: str, problem: str) -> None:
    """What is not there, or not clear, is an error that says so."""
    with pytest.raises(HistoryError, match=problem):
        history.training(reference)


@pytest.fixture
def past(database: Database) -> History:
    """Trainings of two clusters, some of which run."""
    ended = {number: {"cluster": "c", "ended": float(number // 2)} for number in range(10)}
    rows = [row(f"{number:08x}-uid", 0.0, f"job-{number % 3}", **columns) for number, columns in ended.items()]
    rows += [
        row("running", 9.0, cluster="c"),
        row("stopped", 9.0, cluster="c", namespace="b", deleted=4.5, state="Running", image="example.com/50%:1"),
        row("elsewhere", 9.0, cluster="d", namespace="d", ended=9.0),
    ]
    database.write(lambda connection: put(connection, TRAININGS, rows))
    return History(database)


def test_past_pages(past: History) -> None:
    """What has ended or is gone is listed by that time, page by page, without gaps and repetitions."""
    listed: list[Cursor] = []
    after = None
    while page := past.trainings(Filter(cluster="c"), by_end=True, limit=3, after=after):
        listed += [Cursor(record.end or 0.0, record.uid) for record in page]
        after = listed[-1]
    assert listed == sorted(listed, reverse=True)
    assert len(set(listed)) == 11
    assert listed[0] == Cursor(4.5, "stopped")


@pytest.mark.parametrize(
    ("which", "number"),
    [
        pytest.param({}, 11, id="all"),
        pytest.param({"cluster": "d"}, 1, id="cluster"),
        pytest.param({"cluster": ""}, 0, id="no cluster"),
        pytest.param({"namespaces": frozenset({"b", "x"})}, 1, id="namespaces"),
        pytest.param({"namespaces": frozenset()}, 0, id="no namespace"),
        pytest.param({"name": "job-0"}, 4, id="name"),
        pytest.param({"state": "Running"}, 1, id="state"),
        pytest.param({"only_deleted": True}, 1, id="deleted"),
        pytest.param({"words": ("JOB", "-1")}, 3, id="words"),
        pytest.param({"words": ("50%:",)}, 1, id="wildcard as a text"),
        pytest.param({"words": ("%",)}, 1, id="wildcard"),
        pytest.param({"before": 1.0}, 10, id="before"),
    ],
)
def test_past_filters(past: History, which: dict[str, Any], number: int) -> None:
    """Filters select, and combine."""
    assert len(past.trainings(Filter(**{"cluster": "c"} | which), by_end=True)) == number


def test_namespaces(past: History) -> None:
    """Those of one cluster, each once."""
    assert [past.namespaces(cluster) for cluster in ("c", "d", "e")] == [["a", "b"], ["d"], []]


def test_uid(past: History) -> None:
    """A training is found by all of its uid."""
    found = past.of_uid("stopped")
    assert found is not None
    assert (found.namespace, found.end, found.seconds) == ("b", 4.5, None)
    assert past.of_uid("stop") is None


def test_log_tails(history: History, database: Database) -> None:
    """The last lines of some containers are read without those of others."""
    places = [LoggedContainer("node-0", "fetch"), LoggedContainer("node-0", "node"), LoggedContainer("node-1", "node")]
    uid = history.trainings()[0].uid
    fixed = {"uid": uid, "pod": "p", "run": "1", "is_primary": False, "content": compressed([])}
    rows = [fixed | each._asdict() | {"is_training": each.container == "node"} for each in places]
    database.write(lambda connection: put(connection, LOG_TAILS, rows))
    assert history.logged_containers(uid) == [places[1], places[2], places[0]]
    for which in (places, places[1:], []):
        assert [(tail.node, tail.container) for tail in history.log_tails(uid, which)] == which
    assert len(history.log_tails(uid)) == len(places)
