"""Answers of webhooks."""

from __future__ import annotations

import pytest

from trainer.kube.field_errors import FieldError, invalid, required
from trainer.kube.webhook.admission import AdmissionResponse

WRONG = invalid("spec.a", -1, "must be at least 1")
MISSING = required("spec.b")


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        pytest.param([WRONG], "spec.a: Invalid value: -1: must be at least 1", id="one"),
        pytest.param(
            [WRONG, MISSING],
            "[spec.a: Invalid value: -1: must be at least 1, spec.b: Required value]",
            id="several",
        ),
        pytest.param([MISSING, MISSING], "spec.b: Required value", id="each-once"),
    ],
)
def test_denial_is_worded_as_by_the_api_server(errors: list[FieldError], message: str) -> None:
    """One error is its text, several are a list in brackets, and each stands there once."""
    response = AdmissionResponse.deny(errors, warnings=["careful"])
    assert (response.allowed, response.status_code, response.reason) == (False, 422, "Invalid")
    assert response.message == message
    assert response.causes == tuple(dict.fromkeys(errors))
    assert response.warnings == ("careful",)


def test_denial_without_a_reason_is_a_mistake() -> None:
    """A person who is refused must learn why."""
    with pytest.raises(ValueError, match="at least one error"):
        AdmissionResponse.deny([])
