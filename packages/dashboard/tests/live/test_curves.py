"""Curves in bounded memory, and what pages get of them."""

from __future__ import annotations

import json
from typing import Any

from trainer.progress.curves import SAMPLES_LIMIT, Curves
from trainer.progress.samples import MetricId
from trainer_dashboard.live.curves import PIECE, SAMPLES, CurveReader

LOSS = MetricId(is_eval=False, name="loss")
TAG = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


def block(*messages: dict[str, object]) -> bytes:
    return "".join(f"2026-01-01T00:00:00.5Z {TAG} {json.dumps(message)}\n" for message in messages).encode()


def news(reader: CurveReader) -> Any:
    encoded = reader.encoded()
    return None if encoded is None else json.loads(bytes(encoded))


def test_news() -> None:
    """A page gets everything once, and a run that begins again from its start."""
    curves = Curves()
    early = CurveReader(curves)
    assert news(early) == {"isReset": True, "hasMore": False, "series": []}
    assert curves.take(block({"currentStep": 1, "trainMetrics": {"loss": 2}}))
    assert not curves.take(b"2026-01-01T00:00:00.5Z text\n")
    samples = {"times": [1767225600.5], "steps": [1], "values": [2], "hasSteps": True}
    assert news(early) == {"isReset": False, "hasMore": False, "series": [{"kind": "train", "name": "loss"} | samples]}
    assert news(early) is None
    assert news(CurveReader(curves)) == {
        "isReset": True,
        "hasMore": False,
        "series": [{"kind": "train", "name": "loss"} | samples],
    }
    curves.restart()
    assert news(early) == {"isReset": True, "hasMore": False, "series": []}


def test_epochs() -> None:
    """A plain loop has its epochs in place of steps, until it reports steps as well."""
    curves = Curves()
    reader = CurveReader(curves)
    curves.take(b"2026-01-01T00:00:00.5Z Epoch 1/3 loss=2\n2026-01-01T00:00:01.5Z Epoch 2/3 loss=1\n")
    found = news(reader)["series"][0]
    assert (found["steps"], found["hasSteps"]) == ([1, 2], False)
    curves.add(LOSS, 1767225602.5, 7, 0.5)
    found = news(reader)
    assert found["isReset"]
    assert (found["series"][0]["steps"], found["series"][0]["hasSteps"]) == ([-1, -1, 7], True)


def test_many_samples() -> None:
    """A long training loses every second of its samples, and never the last."""
    curves = Curves()
    reader = CurveReader(curves)
    for step in range(SAMPLES_LIMIT + 1):
        curves.add(LOSS, step, step, 1)
    found = news(reader)
    assert found["isReset"]
    steps = found["series"][0]["steps"]
    assert len(steps) == SAMPLES_LIMIT // 2 + 1
    assert steps[-2:] == [SAMPLES_LIMIT - 1, SAMPLES_LIMIT]


def test_pieces() -> None:
    """Many samples come in pieces of a few, in order; together they are the same as in one."""
    curves = Curves()
    metrics = (LOSS, MetricId(is_eval=True, name="loss"))
    for metric in metrics:
        for step in range(PIECE + PIECE // 2):
            curves.add(metric, step + 0.5, step, step / 7)
    reader = CurveReader(curves)
    pieces = [json.loads(bytes(piece)) for piece in reader.pieces({"source": 3})]
    assert {piece["source"] for piece in pieces} == {3}
    assert [(piece["isReset"], piece["hasMore"]) for piece in pieces] == [(True, True), (False, True), (False, False)]
    assert {sum(len(each["times"]) for each in piece["series"]) for piece in pieces} == {PIECE}
    for series in news(CurveReader(curves))["series"]:
        parts = [each for piece in pieces for each in piece["series"] if each["kind"] == series["kind"]]
        assert [value for part in parts for value in part["values"]] == series["values"]
    assert news(reader) is None


def test_a_training_that_is_quicker_than_its_reader() -> None:
    """The pieces end, so that other things are looked at, such as the rights of the reader."""
    curves = Curves(total_limit=10)
    count = 0
    for _ in CurveReader(curves).pieces():
        count += 1
        for step in range(20):
            curves.add(LOSS, step, step, 1)
    assert 1 < count <= SAMPLES // PIECE + 1
