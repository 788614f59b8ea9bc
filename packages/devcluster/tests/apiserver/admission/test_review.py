"""Reviews: what goes to webhooks, what may come back, and what clients get."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer_devcluster.apiserver.admission.review import ResponseError, decode

HEAD = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


def answer(**response: Any) -> bytes:
    return json.dumps({**HEAD, "response": {"uid": "u", "allowed": True, **response}}).encode()


@pytest.mark.parametrize(
    ("content", "mutating", "message"),
    [
        pytest.param(b"[]", False, "couldn't get version/kind; json parse error", id="no object"),
        pytest.param(
            b"[" * 100_000 + b"]" * 100_000,
            False,
            "couldn't get version/kind; json parse error: exceeded max depth",
            id="nested without end",
        ),
        pytest.param(b"{}", False, "webhook response was absent", id="no response"),
        pytest.param(answer(uid="x"), False, 'expected response.uid="u", got "x"', id="uid"),
        pytest.param(
            json.dumps({"response": {"uid": "u"}}).encode(),
            False,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            id="no kind",
        ),
        pytest.param(answer(allowed="yes"), False, "response.allowed must be bool, not str", id="type"),
        pytest.param(
            answer(status={"details": {"causes": 5}}),
            False,
            "response.status.details.causes: Expected `array | null`, got `int`",
            id="causes",
        ),
        pytest.param(
            answer(patchType="JSONPatch"), False, "validating webhook may not return response.patchType", id="type too"
        ),
        pytest.param(
            answer(patch="W10="), True, "webhook returned response.patch but not response.patchType", id="no patch type"
        ),
        pytest.param(
            answer(patchType="JSONPatch"),
            True,
            "webhook returned response.patchType but not response.patch",
            id="no patch",
        ),
        pytest.param(
            answer(patch="W10=", patchType="Merge"),
            True,
            'webhook returned invalid response.patchType of "Merge"',
            id="unknown patch type",
        ),
        pytest.param(answer(patch="!", patchType="JSONPatch"), True, "response.patch is not base64", id="no base64"),
    ],
)
def test_improper_answers(content: bytes, mutating: bool, message: str) -> None:
    """What is no answer to the review is refused, with the reason."""
    with pytest.raises(ResponseError) as caught:
        decode(content, "u", mutating=mutating)
    assert str(caught.value).startswith(message)
