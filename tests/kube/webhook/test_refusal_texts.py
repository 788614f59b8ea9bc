"""Refusals of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.kube.webhook.serving import review_of
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.kube.webhook.refusal_texts import MAX_TOTAL_BYTES, shown_errors
from trainer.kube.webhook.review import AdmissionReview, ReviewError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param(lambda: [invalid(f"spec.a[{index}]", "x", "is wrong") for index in range(100_000)], id="many"),
        pytest.param(lambda: [invalid("spec.a", "x" * 3_000_000, "is wrong")], id="long-value"),
        pytest.param(lambda: [invalid("spec." + "é" * 3_000_000, "x", "is wrong")], id="long-field"),
        pytest.param(lambda: [invalid("spec.a", "x", "é" * 3_000_000)], id="long-rule"),
        pytest.param(lambda: [invalid(f"spec.a[{index}]", "x" * 9000, "y" * 9000) for index in range(1000)], id="both"),
    ],
)
def test_an_answer_is_small_whatever_is_wrong(errors: Callable[[], list[FieldError]]) -> None:
    """The message and the causes have some kilobytes, and say when there is more."""
    review = AdmissionReview.decode(msgspec.json.encode(review_of()))
    response = AdmissionResponse.deny(errors())
    assert len(review.encode(response)) < 4 * MAX_TOTAL_BYTES
    assert len(response.causes) == 1 or "more errors are not shown" in str(response.causes[-1])


def test_errors_that_people_make_are_whole() -> None:
    """A dozen errors of usual length are given as they are, each once."""
    errors = [invalid(f"spec.field{index}", index, "must be at most 0") for index in range(12)]
    assert shown_errors([*errors, *errors]) == tuple(errors)


def test_a_failure_is_small() -> None:
    """What an error of another system tells is cut as well."""
    review = AdmissionReview.decode(msgspec.json.encode(review_of()))
    assert len(review.encode(AdmissionResponse.fail(500, "InternalError", "x" * 1_000_000))) < 32 * 1024


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        pytest.param({"uid": "x" * 60_000}, "request.uid", id="uid"),
        pytest.param({"name": "x" * 60_000}, "request.name", id="name"),
        pytest.param({"namespace": "x" * 60_000}, "request.namespace", id="namespace"),
        pytest.param({"kind": {"group": "", "version": "v1", "kind": "-eyJ" * 15_000}}, "request.kind.kind", id="kind"),
        pytest.param(
            {"resource": {"group": "x" * 60_000, "version": "v1", "resource": "w"}},
            "request.resource.group",
            id="group",
        ),
    ],
)
def test_names_that_no_api_server_sends(fields: dict[str, Any], field: str) -> None:
    """They are refused by their field, before they get into answers and logs."""
    with pytest.raises(ReviewError, match=rf"^{field}: Too long: may not be more than 1024 bytes$"):
        AdmissionReview.decode(msgspec.json.encode(review_of(**fields)))
