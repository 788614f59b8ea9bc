"""Reviews that are as large as an API server lets them be: linear work, small answers."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.framework.samples import train_job_object
from tests.kube.webhook.serving import review_of
from tests.webhooks.requests import admit
from trainer.kube.objects import Object
from trainer.kube.webhook.review import AdmissionReview

MANY = 100_000
UNKNOWN: Object = {f"numNode{index}": index for index in range(MANY)}
SMALL_ANSWER = 32 * 1024
SINCE = {"reason": "JobsCreationSucceeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
CREATED: Object = {"conditions": [{"type": "Created", "status": "True", **SINCE}]}


def with_metadata(**metadata: Any) -> Object:
    obj = train_job_object()
    return obj | {"metadata": obj["metadata"] | metadata}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(train_job_object() | UNKNOWN, id="object"),
        pytest.param(train_job_object(**UNKNOWN), id="spec"),
        pytest.param(train_job_object(trainer=UNKNOWN), id="trainer"),
        pytest.param(train_job_object(trainer=dict.fromkeys(UNKNOWN)), id="nulls"),
        pytest.param(train_job_object(trainer={"env": [{"nam": "a"}] * MANY}), id="items"),
        pytest.param(train_job_object(podSpecOverrides=[{"targetJobs": [{"name": "x"}]}] * MANY), id="overrides"),
        pytest.param(train_job_object(labels={f"a{index}=": "x y" for index in range(MANY)}), id="labels"),
        pytest.param(train_job_object(annotations={"a" * 2_000_000: "x"}), id="long-key"),
        pytest.param(train_job_object(trainer={"numProcPerNode": "9x" * 1_000_000}), id="long-value"),
        pytest.param(with_metadata(**UNKNOWN), id="metadata"),
    ],
)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
async def test_a_hundred_thousand_mistakes(obj: Object, operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the first ones, in some kilobytes, and nothing copies the object on the way."""
    copied: list[object] = []
    deepcopy = copy.deepcopy

    def noting(value: Any, *arguments: Any) -> Any:
        copied.append(value)
        return deepcopy(value, *arguments)

    monkeypatch.setattr(copy, "deepcopy", noting)
    response = await admit(obj, train_job_object() if operation == "UPDATE" else None)
    assert not response.allowed
    assert response.status_code == 422
    review = AdmissionReview.decode(msgspec.json.encode(review_of(operation)))
    assert len(review.encode(response)) < SMALL_ANSWER
    assert max((len(str(value)) for value in copied), default=0) < SMALL_ANSWER


async def test_a_status_that_no_api_server_stores() -> None:
    """A hundred thousand conditions are not read: a peer that is no API server may have made them up."""
    obj = train_job_object(status={"conditions": [{"type": "Created", "status": "True"}] * MANY})
    assert (await admit(obj, obj)).allowed


def nested(depth: int, leaf: Any, name: str = "a") -> Object:
    """One mapping in another."""
    value: Any = leaf
    for _ in range(depth):
        value = {name: value}
    return {name: value}


def in_lists(depth: int, leaf: Any) -> list[Any]:
    """One list in another."""
    value: Any = leaf
    for _ in range(depth):
        value = [value]
    return [value]


@pytest.mark.parametrize(
    "trainer_of",
    [
        pytest.param(lambda leaf: dict.fromkeys(UNKNOWN, leaf), id="fields"),
        pytest.param(lambda leaf: {"args": [leaf] * MANY}, id="items"),
        pytest.param(lambda leaf: nested(40, {f"a{index}": leaf for index in range(2000)}, "a" * 400), id="long-path"),
        pytest.param(lambda leaf: nested(700, leaf), id="depth-of-mappings"),
        pytest.param(lambda leaf: {"args": in_lists(700, leaf)}, id="depth-of-lists"),
    ],
)
async def test_a_hundred_thousand_changes(trainer_of: Callable[[str], Object]) -> None:
    """The refusal names the first fields that may not change, and the paths of the others are never written."""
    old = train_job_object(trainer=trainer_of("1"), status=CREATED)
    tracemalloc.start()
    try:
        response = await admit(train_job_object(trainer=trainer_of("2"), status=CREATED), old)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert response.status_code == 422
    assert "spec.trainer" in response.message
    review = AdmissionReview.decode(msgspec.json.encode(review_of("UPDATE")))
    assert len(review.encode(response)) < SMALL_ANSWER
    assert peak < 32 * 1024 * 1024


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("x", id="text"),
        pytest.param([1], id="list"),
        pytest.param({"conditions": ["x", None]}, id="conditions"),
        pytest.param({"conditions": {"a": 1}}, id="mapping-of-conditions"),
        pytest.param(CREATED | {"scale": {"minNodes": "x", "maxNodes": {}}}, id="bounds"),
        pytest.param(CREATED | {"jobsStatus": ["x"]}, id="jobs"),
    ],
)
async def test_a_status_of_another_shape(status: Any) -> None:
    """What no API server stores is no status, and no defect of ours that operators are alarmed of."""
    old = train_job_object(trainer={"numNodes": 1}, status=status)
    assert (await admit(train_job_object(trainer={"numNodes": 2}, suspend=True, labels={"a": "b"}), old)).allowed


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        pytest.param(with_metadata(name=5), "metadata.name", id="name"),
        pytest.param(train_job_object(podSpecOverrides=5), "spec.podSpecOverrides", id="overrides"),
        pytest.param(train_job_object(trainer=in_lists(5000, 1)), "spec.trainer", id="depth"),
    ],
)
async def test_shapes_that_no_api_server_sends(obj: Object, field: str) -> None:
    """The refusal names the field."""
    response = await admit(obj)
    assert response.status_code == 422
    assert field in response.message
    assert (await admit(train_job_object(), obj | {"status": CREATED})).status_code in {200, 422}
