"""Errors and warnings of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.kube.webhook.serving import review_of
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer.kube.webhook.texts import (
    MAX_CUT_WARNING_BYTES,
    MAX_ERROR_BYTES,
    MAX_WARNING_BYTES,
    shortened,
    shown_errors,
)


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
    assert len(review.encode(response)) < 4 * MAX_ERROR_BYTES
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


@pytest.mark.parametrize(
    ("warnings", "texts"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["spec.a is deprecated"], ["spec.a is deprecated"], id="short"),
        pytest.param(["a", "b", "a"], ["a", "b"], id="each-once"),
        pytest.param(["two\nlines\tand\x00more"], ["two lines and more"], id="control-characters"),
        pytest.param(["", " \n "], [], id="empty"),
        pytest.param(["w\ud800"], ["w?"], id="lone-surrogate"),
        pytest.param(["ü" * 1000], ["ü" * 1000], id="long-but-alone"),
    ],
)
def test_texts_become_headers(warnings: list[str], texts: list[str]) -> None:
    """What would be lost as an HTTP header is put on one line; a long text stays whole while there is room."""
    assert shortened(warnings) == texts


def test_long_texts_are_cut_when_they_are_too_many() -> None:
    """Each is cut between characters, and says so, when all together have more than 4096 bytes."""
    texts = shortened([f"{number}{'ü' * 1000}" for number in range(5)])
    assert [text[0] for text in texts] == list("01234")
    assert all(text.endswith("ü...") and len(text.encode()) <= MAX_CUT_WARNING_BYTES for text in texts)


def test_what_is_left_out_is_counted() -> None:
    """The last line tells how many there were no room for."""
    warnings = [f"{number:03} {'x' * 300}" for number in range(100)]
    *texts, last = shortened(warnings)
    assert last == f"warnings not shown: {100 - len(texts)}"
    assert (
        MAX_WARNING_BYTES - MAX_CUT_WARNING_BYTES
        < sum(len(text.encode()) for text in [*texts, last])
        <= MAX_WARNING_BYTES
    )
