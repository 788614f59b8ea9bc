"""Reviews that are as large as an API server lets them be: linear work, small answers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.framework.samples import train_job_object
from tests.kube.webhook.serving import review_of
from tests.webhooks.requests import admit
from trainer.kube.webhook.review import AdmissionReview

if TYPE_CHECKING:
    from trainer.kube.objects import Object

MANY = 100_000
UNKNOWN: Object = {f"numNode{index}": index for index in range(MANY)}
SMALL_ANSWER = 32 * 1024


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
