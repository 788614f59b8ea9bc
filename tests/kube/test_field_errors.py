"""Wording of field errors."""

from __future__ import annotations

import pytest

from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("a\n", '"a\\n"', id="text is quoted"),
        pytest.param(3, "3", id="integer"),
        pytest.param(1.5, "1.5", id="fraction"),
        pytest.param(10.0, "10", id="whole float"),
        pytest.param(1e21, "1e+21", id="large float"),
        pytest.param(0.00001, "1e-05", id="small float"),
        pytest.param(2.5e-7, "2.5e-07", id="small fraction"),
        pytest.param(True, "true", id="boolean"),
        pytest.param(None, "null", id="null"),
        pytest.param({"b": 1, "a": ["é"]}, '{"a":["é"],"b":1}', id="object is compact and sorted"),
    ],
)
def test_values_are_shown_as_go_shows_them(value: object, shown: str) -> None:
    """Numbers look like Go's, the rest like compact JSON."""
    assert field_errors.show(value) == shown


@pytest.mark.parametrize(
    ("cause", "reason", "text"),
    [
        pytest.param(
            field_errors.invalid("spec.a", 3, "must be 4"),
            "FieldValueInvalid",
            "spec.a: Invalid value: 3: must be 4",
            id="invalid",
        ),
        pytest.param(
            field_errors.invalid("spec", field_errors.OMITTED, "no"),
            "FieldValueInvalid",
            "spec: Invalid value: no",
            id="omitted value",
        ),
        pytest.param(field_errors.required("spec.a"), "FieldValueRequired", "spec.a: Required value", id="required"),
        pytest.param(
            field_errors.required("spec.a", "say why"),
            "FieldValueRequired",
            "spec.a: Required value: say why",
            id="required with detail",
        ),
        pytest.param(
            field_errors.not_supported("m", "x", ["fast", "slow"]),
            "FieldValueNotSupported",
            'm: Unsupported value: "x": supported values: "fast", "slow"',
            id="not supported",
        ),
        pytest.param(
            field_errors.not_supported("m", 3, [1, 2]),
            "FieldValueNotSupported",
            'm: Unsupported value: 3: supported values: "1", "2"',
            id="not supported number",
        ),
        pytest.param(
            field_errors.too_many("l", 4, 3),
            "FieldValueTooMany",
            "l: Too many: 4: must have at most 3 items",
            id="too many",
        ),
        pytest.param(
            field_errors.too_long("s", 20),
            "FieldValueTooLong",
            "s: Too long: may not be more than 20 bytes",
            id="too long",
        ),
        pytest.param(
            field_errors.duplicate("l[1]", {"name": "p"}),
            "FieldValueDuplicate",
            'l[1]: Duplicate value: {"name":"p"}',
            id="duplicate",
        ),
        pytest.param(field_errors.forbidden("s", "no"), "FieldValueForbidden", "s: Forbidden: no", id="forbidden"),
        pytest.param(
            field_errors.type_invalid("s", "string", "bad"),
            "FieldValueTypeInvalid",
            's: Invalid value: "string": bad',
            id="type",
        ),
    ],
)
def test_wording(cause: FieldError, reason: str, text: str) -> None:
    """Messages and cause types are those of the API server."""
    assert (cause.reason, str(cause)) == (reason, text)
