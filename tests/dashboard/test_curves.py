"""Curves in bounded memory, and what pages get of them."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from trainer.dashboard.curves import CurveReader
from trainer.progress.curves import SAMPLES_LIMIT, Curves
from trainer.progress.samples import MetricId

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
    assert news(early) == {"isReset": True, "series": []}
    assert curves.take(block({"currentStep": 1, "trainMetrics": {"loss": 2}}))
    assert not curves.take(b"2026-01-01T00:00:00.5Z text\n")
    samples = {"times": [1767225600.5], "steps": [1], "values": [2]}
    assert news(early) == {"isReset": False, "series": [{"kind": "train", "name": "loss"} | samples]}
    assert news(early) is None
    assert news(CurveReader(curves)) == {"isReset": True, "series": [{"kind": "train", "name": "loss"} | samples]}
    curves.restart()
    assert news(early) == {"isReset": True, "series": []}


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


@pytest.mark.parametrize(
    ("samples", "is_beside"),
    [pytest.param(3, False, id="few"), pytest.param(SAMPLES_LIMIT, True, id="many")],
)
async def test_encoded_news(samples: int, is_beside: bool) -> None:
    """Encoded news are the same; while those of many samples are encoded, the event loop goes on."""
    curves = Curves()
    for metric in (LOSS, MetricId(is_eval=True, name="loss")):
        for step in range(samples):
            curves.add(metric, step + 0.5, step, step / 7)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await anyio.lowlevel.checkpoint()
        before = turns
        encoded = await CurveReader(curves).encoded_news({"source": 3})
        assert (turns > before) is is_beside
        tasks.cancel_scope.cancel()
    assert encoded is not None
    assert json.loads(bytes(encoded)) == {"source": 3} | news(CurveReader(curves))
