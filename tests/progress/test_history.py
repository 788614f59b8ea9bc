"""What is kept of the metrics of trainings."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.kube.manager.manager import Manager
from trainer.kube.manager.routes import HttpResponse, Routes
from trainer.kube.objects import ObjectKey
from trainer.kube.podlogs.instant import Instant
from trainer.progress.history import FULL_METRICS, History, HistoryServer, Sample, SeriesKind
from trainer.progress.protocol import METRICS_LIMIT, TEXT_LIMIT, Message
from trainer_kube_testing import FakeClient, ManualClock

JOB, OTHER = ObjectKey("team", "a"), ObjectKey("team", "b")


def shown(history: History, key: ObjectKey = JOB) -> dict[str, list[Sample]]:
    """The samples by kind and name."""
    job = history.of(key)
    assert job is not None
    return {f"{series.kind}/{series.name}": list(series.samples) for series in job.series()}


def record(history: History, *messages: Message, start: int = 1, key: ObjectKey = JOB, uid: str = "1") -> None:
    """Messages that are a second apart."""
    for second, message in enumerate(messages, start):
        history.record(key, uid, message, Instant(second))


def test_samples_by_metric() -> None:
    """Metrics of training and evaluation, percentage, step and epoch, each with the time of its line."""
    history = History()
    history.record(
        JOB,
        "1",
        Message(progress_percentage=10, current_step=4, train_metrics={"loss": "0.2340"}),
        Instant(7, 5 * 10**8),
    )
    history.record(JOB, "1", Message(current_epoch=1, eval_metrics={"loss": "1e-05", "acc": "1"}), Instant(9))
    assert (
        shown(history)
        == {
            "progress/progressPercentage": [(7.5, 10.0)],
            "progress/currentStep": [(7.5, 4.0)],
            "progress/currentEpoch": [(9.0, 1.0)],
            "train/loss": [(7.5, 0.234)],
            "eval/loss": [(9.0, 1e-05)],
            "eval/acc": [(9.0, 1.0)],
        }
        | {}
    )
    job = history.of(JOB)
    assert job is not None
    assert job.last_time == 9
    assert job.names == [
        (SeriesKind.EVAL, "acc"),
        (SeriesKind.EVAL, "loss"),
        (SeriesKind.PROGRESS, "currentEpoch"),
        (SeriesKind.PROGRESS, "currentStep"),
        (SeriesKind.PROGRESS, "progressPercentage"),
        (SeriesKind.TRAIN, "loss"),
    ]


def test_last_samples_stay() -> None:
    """Of each metric the last N, so that one that is reported seldom is not pushed out by others."""
    history = History(samples=3)
    record(history, Message(eval_metrics={"acc": "0.5"}))
    record(history, *(Message(train_metrics={"loss": str(step)}) for step in range(10)), start=2)
    assert shown(history) == {
        "eval/acc": [(1.0, 0.5)],
        "train/loss": [(9.0, 7.0), (10.0, 8.0), (11.0, 9.0)],
    }


def test_metric_that_comes_in_different_company() -> None:
    """Its samples are one series, in the order of time."""
    history = History(samples=3)
    record(
        history,
        Message(train_metrics={"loss": "1"}),
        Message(train_metrics={"loss": "2", "rate": "0.1"}),
        Message(train_metrics={"loss": "3"}),
        Message(train_metrics={"rate": "0.2", "loss": "4"}),
    )
    assert shown(history) == {
        "train/loss": [(2.0, 2.0), (3.0, 3.0), (4.0, 4.0)],
        "train/rate": [(2.0, 0.1), (4.0, 0.2)],
    }


def test_messages_that_are_read_again() -> None:
    """A log is read again from some second on: what is known already is not there twice, what is new counts."""
    history = History()
    messages = [Message(current_step=step, train_metrics={"loss": "1"}) for step in range(3)]
    record(history, *messages)
    record(history, *messages[1:], Message(train_metrics={"loss": "2"}), start=2)
    assert shown(history) == {
        "progress/currentStep": [(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)],
        "train/loss": [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 2.0)],
    }


def test_clock_that_is_set_back() -> None:
    """The samples that come afterwards are kept as well."""
    history = History()
    record(history, Message(current_step=1), start=100)
    record(history, Message(current_step=2), start=40)
    assert shown(history) == {"progress/currentStep": [(40.0, 2.0), (100.0, 1.0)]}


def test_job_of_the_same_name() -> None:
    """It does not inherit the samples of the one before."""
    history = History()
    record(history, Message(current_step=9))
    record(history, Message(current_step=1), uid="2", start=5)
    assert shown(history) == {"progress/currentStep": [(5.0, 1.0)]}
    record(history, Message(), uid="3")
    assert history.of(JOB) is None


def test_jobs_are_apart() -> None:
    """Each has its own samples until it is forgotten."""
    history = History()
    record(history, Message(current_step=2), key=OTHER)
    record(history, Message(current_step=1))
    assert [key for key, _ in history] == [JOB, OTHER]
    history.forget(JOB)
    history.forget(JOB)
    assert history.of(JOB) is None
    assert shown(history, OTHER) == {"progress/currentStep": [(1.0, 2.0)]}
    assert len(history) == 1


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Message(), id="empty"),
        pytest.param(Message(total_steps=5, total_epochs=3, estimated_remaining_seconds=4), id="nothing-that-is-kept"),
        pytest.param(Message(train_metrics={}, eval_metrics={}), id="no-metrics"),
    ],
)
def test_messages_without_samples(message: Message) -> None:
    """They make no history."""
    history = History()
    record(history, message)
    assert history.of(JOB) is None
    assert not list(history)


def test_no_samples_are_kept_if_none_are_wanted() -> None:
    """0 switches the history off; less is a mistake."""
    history = History(samples=0)
    record(history, Message(current_step=1))
    assert history.of(JOB) is None
    with pytest.raises(ValueError, match="must not be negative: -1"):
        History(samples=-1)


@pytest.mark.parametrize("samples", [1, 7])
def test_the_largest_message(samples: int) -> None:
    """As many metrics as a message may have are all there, even if there is room for few samples."""
    history = History(samples=samples)
    names = [f"{index}".rjust(TEXT_LIMIT, "n") for index in range(METRICS_LIMIT)]
    metrics = dict.fromkeys(names, "0.5")
    for _ in range(3):
        record(history, Message(progress_percentage=1, train_metrics=metrics, eval_metrics=metrics), start=9)
    assert len(shown(history)) == 2 * METRICS_LIMIT + 1


@pytest.mark.parametrize("samples", [1, 50, 200])
def test_many_metrics_have_fewer_samples(samples: int) -> None:
    """Up to a number of metrics all samples stay; of more, the oldest ones of the whole TrainJob go."""
    history = History(samples=samples)
    few = {f"m{index}": "1" for index in range(FULL_METRICS - 1)}
    position = Message(progress_percentage=1, current_step=2, current_epoch=1)
    record(history, *[replace(position, train_metrics=few, eval_metrics={"acc": "1"})] * 300)
    assert {len(found) for found in shown(history).values()} == {samples}
    many = {f"m{index}": "1" for index in range(METRICS_LIMIT)}
    record(history, *[replace(position, train_metrics=many, eval_metrics=many)] * 300, key=OTHER)
    assert {found[-1][0] for found in shown(history, OTHER).values()} == {300.0}
    assert sum(map(len, shown(history, OTHER).values())) <= max(sum(map(len, shown(history).values())), 3 * 5000)


@pytest.mark.parametrize(
    ("width", "changing"),
    [
        pytest.param(METRICS_LIMIT, False, id="many-metrics"),
        pytest.param(1, True, id="always-another-metric"),
        pytest.param(40, True, id="always-other-metrics"),
    ],
)
def test_memory_is_bounded(width: int, changing: bool) -> None:
    """Whatever a training prints, its history takes less than 150 KB."""
    history = History()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for step in range(500):
            suffix = step if changing else 0
            metrics = {f"{suffix}-{index}".rjust(TEXT_LIMIT, "n"): "0.5" for index in range(width)}
            history.record(JOB, "1", Message(current_step=step, train_metrics=metrics), Instant(step))
            del metrics
        assert tracemalloc.get_traced_memory()[0] - before < 150_000
    finally:
        tracemalloc.stop()
    assert history.of(JOB) is not None


NAMES = st.sampled_from(["a", "b", "c"])
MESSAGES = st.builds(
    Message,
    current_step=st.none() | st.integers(0, 5),
    train_metrics=st.none() | st.dictionaries(NAMES, st.integers(0, 9).map(str), max_size=3),
    eval_metrics=st.none() | st.dictionaries(NAMES, st.integers(0, 9).map(str), max_size=2),
)


@given(st.lists(MESSAGES, max_size=30), st.integers(1, 5))
def test_same_as_lists_of_samples(messages: list[Message], samples: int) -> None:
    """However metrics are combined in messages, each has its own last N samples."""
    history = History(samples=samples)
    record(history, *messages)
    expected: dict[str, list[Sample]] = {}
    for second, message in enumerate(messages, 1):
        values = {f"train/{name}": value for name, value in (message.train_metrics or {}).items()}
        values |= {f"eval/{name}": value for name, value in (message.eval_metrics or {}).items()}
        if message.current_step is not None:
            values["progress/currentStep"] = str(message.current_step)
        for name, value in values.items():
            expected.setdefault(name, []).append((float(second), float(value)))
    found = shown(history) if history.of(JOB) is not None else {}
    assert found == {name: values[-samples:] for name, values in expected.items()}


A = {"namespace": "team", "name": "a", "uid": "1", "lastSampleTime": 2.5}
B = {"namespace": "other", "name": "b", "uid": "2", "lastSampleTime": 7.0}

TAKE_OUT = "there are no query parameters here; take out: a, since"


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch) -> Routes:
    history = History()
    message = Message(progress_percentage=45, current_step=9, train_metrics={"loss": "0.2340"})
    history.record(ObjectKey("team", "a"), "1", message, Instant(1))
    message = Message(progress_percentage=46, eval_metrics={"loss": "1e-05"}, train_metrics={"loss": "0.1"})
    history.record(ObjectKey("team", "a"), "1", message, Instant(2, 5 * 10**8))
    history.record(ObjectKey("other", "b"), "2", Message(current_epoch=1), Instant(7))
    routes = Routes()
    manager = Manager(FakeClient(clock=ManualClock()))
    monkeypatch.setattr(manager, "serve", routes.add)
    HistoryServer(history).register(manager)
    return routes


def content(response: HttpResponse) -> Any:
    assert response.content_type == "application/json"
    return json.loads(response.body)


async def test_one_train_job(routes: Routes) -> None:
    """All samples by metric, times in seconds."""
    response = await routes.answer("/progress/v1/namespaces/team/trainjobs/a", {})
    assert response.status == 200
    assert content(response) == A | {
        "metrics": [
            {"name": "loss", "kind": "eval", "samples": [[2.5, 1e-05]]},
            {"name": "loss", "kind": "train", "samples": [[1.0, 0.234], [2.5, 0.1]]},
        ],
        "progress": [
            {"name": "currentStep", "samples": [[1.0, 9.0]]},
            {"name": "progressPercentage", "samples": [[1.0, 45.0], [2.5, 46.0]]},
        ],
    }


@pytest.mark.parametrize(
    ("path", "items"),
    [
        pytest.param("/progress/v1/trainjobs", [B, A], id="all"),
        pytest.param("/progress/v1/namespaces/team/trainjobs", [A], id="namespace"),
        pytest.param("/progress/v1/namespaces/nobody/trainjobs", [], id="empty-namespace"),
    ],
)
async def test_lists(routes: Routes, path: str, items: list[dict[str, object]]) -> None:
    """What has samples, sorted, without the samples."""
    assert content(await routes.answer(path, {})) == {"items": items}


@pytest.mark.parametrize(
    ("path", "query", "status", "message"),
    [
        pytest.param(
            "/progress/v1/namespaces/team/trainjobs/b",
            {},
            404,
            "there are no samples of TrainJob b in namespace team: samples are kept of TrainJobs that run and report "
            "metrics, by the manager that leads, since it was started",
            id="unknown",
        ),
        *(
            pytest.param(f"/progress/v1{path}", {"since": ("1",), "a": ("2",)}, 400, TAKE_OUT, id=f"query-of{path}")
            for path in ("/trainjobs", "/namespaces/team/trainjobs", "/namespaces/team/trainjobs/a")
        ),
    ],
)
async def test_errors(routes: Routes, path: str, query: dict[str, tuple[str, ...]], status: int, message: str) -> None:
    """They are JSON with one text that says what to do."""
    response = await routes.answer(path, query)
    assert response.status == status
    assert content(response) == {"error": message}
