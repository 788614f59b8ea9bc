"""Reviews: what goes to webhooks, what may come back, and what clients get."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer_devcluster.apiserver.admission.review import ResponseError, decode, denial

HEAD = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


def answer(**response: Any) -> bytes:
    return json.dumps({**HEAD, "response": {"uid": "u", "allowed": True, **response}}).encode()


def test_verdict() -> None:
    """Everything that a proper answer may have is read."""
    verdict = decode(
        answer(patchType="JSONPatch", patch="W10=", warnings=["w"], status={"code": 418}), "u", mutating=True
    )
    assert (verdict.allowed, verdict.patch, verdict.warnings, verdict.result) == (True, b"[]", ("w",), {"code": 418})


@pytest.mark.parametrize(
    ("content", "mutating", "message"),
    [
        pytest.param(b"{", False, "couldn't get version/kind; json parse error", id="no JSON"),
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


@pytest.mark.parametrize(
    ("result", "code", "reason", "message"),
    [
        pytest.param({}, 400, "", 'admission webhook "w" denied the request without explanation', id="nothing"),
        pytest.param({"message": "no"}, 400, "", 'admission webhook "w" denied the request: no', id="message"),
        pytest.param({"reason": "Why"}, 400, "Why", 'admission webhook "w" denied the request: Why', id="reason"),
        pytest.param(
            {"code": 403, "reason": "Forbidden", "message": "no"},
            403,
            "Forbidden",
            'admission webhook "w" denied the request: no',
            id="all",
        ),
        pytest.param(
            {"code": 200, "status": "Success"},
            400,
            "",
            'admission webhook "w" denied the request without explanation',
            id="a denial is no success",
        ),
        pytest.param({"code": 422, "message": "x"}, 422, "", 'admission webhook "w" denied the request: x', id="422"),
        pytest.param(
            {"code": "403", "message": "x"}, 400, "", 'admission webhook "w" denied the request: x', id="text"
        ),
        pytest.param(
            {"code": 10**9, "message": "x"}, 400, "", 'admission webhook "w" denied the request: x', id="huge"
        ),
    ],
)
def test_denials(result: dict[str, Any], code: int, reason: str, message: str) -> None:
    """Code and reason are those of the webhook; a code below 400 becomes 400."""
    error = denial("w", result)
    assert (error.code, error.status.get("reason", ""), error.message) == (code, reason, message)


def test_denials_keep_details() -> None:
    """Causes with field paths reach the client."""
    details = {"causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "spec.x"}]}
    status = denial("w", {"code": 422, "reason": "Invalid", "message": "m", "details": details}).status
    assert (status["status"], status["details"]) == ("Failure", details)
