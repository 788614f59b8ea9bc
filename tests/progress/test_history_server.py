"""The history of metrics as dashboards read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer.kube.manager.manager import Manager
from trainer.kube.manager.routes import HttpResponse, Routes
from trainer.kube.objects import ObjectKey
from trainer.kube.podlogs.instant import Instant
from trainer.kube.testing import FakeClient, ManualClock
from trainer.progress.history import History
from trainer.progress.history_server import HistoryServer
from trainer.progress.protocol import Message

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
