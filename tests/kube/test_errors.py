"""Failure answers as typed errors."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube import errors
from trainer.kube.errors import ApiError, KubeError, causes_of, error_from_status


@pytest.mark.parametrize(
    ("reason", "code", "kind"),
    [
        pytest.param("Unauthorized", 401, errors.UnauthorizedError, id="Unauthorized"),
        pytest.param("Forbidden", 403, errors.ForbiddenError, id="Forbidden"),
        pytest.param("NotFound", 404, errors.NotFoundError, id="NotFound"),
        pytest.param("AlreadyExists", 409, errors.AlreadyExistsError, id="AlreadyExists"),
        pytest.param("Conflict", 409, errors.ConflictError, id="Conflict"),
        pytest.param("Gone", 410, errors.GoneError, id="Gone"),
        pytest.param("Expired", 410, errors.GoneError, id="Expired"),
        pytest.param("Invalid", 422, errors.InvalidError, id="Invalid"),
        pytest.param("ServerTimeout", 500, errors.ServerTimeoutError, id="ServerTimeout"),
        pytest.param("Timeout", 504, errors.ServerTimeoutError, id="Timeout"),
        pytest.param("TooManyRequests", 429, errors.TooManyRequestsError, id="TooManyRequests"),
        pytest.param("BadRequest", 400, errors.BadRequestError, id="BadRequest"),
        pytest.param("MethodNotAllowed", 405, errors.MethodNotAllowedError, id="MethodNotAllowed"),
        pytest.param("NotAcceptable", 406, errors.NotAcceptableError, id="NotAcceptable"),
        pytest.param("InternalError", 500, errors.InternalError, id="InternalError"),
        pytest.param("ServiceUnavailable", 503, errors.ServiceUnavailableError, id="ServiceUnavailable"),
    ],
)
def test_each_status_reason_has_its_error(reason: str, code: int, kind: type[ApiError]) -> None:
    """All reasons of metav1 are known; without a reason the HTTP code decides where it can."""
    error = error_from_status(code, {"reason": reason, "message": "no"})
    assert type(error) is kind
    assert (error.code, error.status_reason, str(error)) == (code, reason, "no")
    without_reason = error_from_status(code, {})
    assert isinstance(without_reason, KubeError)
    assert str(code) in str(without_reason)


def test_unknown_reasons_are_plain_api_errors() -> None:
    """A newer or another server breaks nothing."""
    error = error_from_status(418, {"reason": "Teapot"})
    assert type(error) is ApiError
    assert error.status_reason == "Teapot"


@pytest.mark.parametrize(
    "details",
    [
        None,
        "text",
        {},
        {"causes": None, "retryAfterSeconds": "soon"},
        {"retryAfterSeconds": -5},
        {"retryAfterSeconds": 10**400},
    ],
)
def test_broken_details_are_no_details(details: Any) -> None:
    """Whatever stands between us and the server may answer anything."""
    error = error_from_status(503, {"details": details})
    assert error.causes == []
    assert error.retry_after_seconds is None
    assert not error.has_cause("x")


def test_causes_are_unwrapped() -> None:
    """Task groups around task groups hide nothing."""
    first, second = ValueError(), OSError()
    assert causes_of(first) == (first,)
    assert causes_of(ExceptionGroup("", [ExceptionGroup("", [first]), second])) == (first, second)


@pytest.mark.parametrize("value", [None, 7, ["a"], {}], ids=["null", "number", "array", "object"])
def test_broken_status_has_neither_reason_nor_message(value: Any) -> None:
    """What is no text is left out, so that the error can be shown and handled all the same."""
    error = error_from_status(503, {"reason": value, "message": value, "details": {"causes": [value]}})
    assert isinstance(error, errors.ServiceUnavailableError)
    assert str(error) == "the API server answered with HTTP status 503"
    assert not error.has_cause("x")


def test_details() -> None:
    """Causes name the wrong fields, the pause is in seconds."""
    causes = [{"reason": "FieldManagerConflict", "field": ".spec"}]
    error = error_from_status(409, {"details": {"causes": causes, "retryAfterSeconds": 2}})
    assert error.causes == causes
    assert error.has_cause("FieldManagerConflict")
    assert error.retry_after_seconds == 2


@pytest.mark.parametrize(
    ("about", "kind"),
    [
        pytest.param("namespaces", errors.NamespaceNotFoundError, id="the-namespace"),
        pytest.param("pods", errors.NotFoundError, id="an-object"),
    ],
)
def test_a_namespace_that_is_gone(about: str | None, kind: type[ApiError]) -> None:
    """What is created there is refused as not found, with the namespace as what is missing."""
    details = {"name": "a"} | ({"kind": about} if about else {})
    error = error_from_status(404, {"reason": "NotFound", "message": "no", "details": details})
    assert type(error) is kind
    assert isinstance(error, errors.NotFoundError)


@pytest.mark.parametrize(
    ("causes", "kind"),
    [
        pytest.param([{"reason": "NamespaceTerminating"}], errors.NamespaceTerminatingError, id="being-deleted"),
        pytest.param([{"reason": "FieldValueForbidden"}], errors.ForbiddenError, id="another-cause"),
        pytest.param([], errors.ForbiddenError, id="no-cause"),
    ],
)
def test_a_namespace_that_is_being_deleted(causes: list[dict[str, str]], kind: type[ApiError]) -> None:
    """Its refusal has the reason of a missing right, and another cause."""
    error = error_from_status(403, {"reason": "Forbidden", "message": "no", "details": {"causes": causes}})
    assert type(error) is kind
    assert (error.code, error.status_reason, error.causes) == (403, "Forbidden", causes)


@pytest.mark.parametrize(
    "quoted",
    [
        pytest.param('[{"name":"node","env":[{"name":"TOKEN","value":"se}]: cret \\" "}]}]', id="JSON"),
        pytest.param('{"TOKEN":"secret"}', id="one object"),
        pytest.param('[]v1alpha2.ReplicatedJob{v1alpha2.ReplicatedJob{Env:[]v1.EnvVar{{Value:"secret"}}}}', id="Go"),
        pytest.param('&core.PodTemplateSpec{Labels:map[string]string{"a":"secret"}}', id="pointer"),
    ],
)
def test_quoted_objects_are_not_shown(quoted: str) -> None:
    """What a server quotes may hold secrets: text for people has field and rule; the message is as it was sent."""
    begin = 'admission webhook "vjobset.kb.io" denied the request: '
    message = f"{begin}[spec.a: Invalid value: {quoted}: field is immutable, spec.b: Invalid value: {quoted}: is bad]"
    error = error_from_status(403, {"reason": "Forbidden", "message": message})
    assert str(error) == f"{begin}[spec.a: Invalid value: field is immutable, spec.b: Invalid value: is bad]"
    assert isinstance(error, ApiError)
    assert error.message == message


@pytest.mark.parametrize("value", ["-1", '"{}"', '"a: b"', '["a","b"]', "must be in body of type string"])
def test_plain_values_are_shown(value: str) -> None:
    """Numbers and strings tell what is wrong."""
    message = f"spec.a: Invalid value: {value}: must be something else"
    assert str(error_from_status(422, {"message": message})) == message


def test_documented_set_is_complete() -> None:
    """The table in the module's documentation names each error, or its group."""
    grouped = {"KubeError", "ApiError"}
    named = {name for name in vars(errors) if name.endswith("Error")} - grouped
    documentation = errors.__doc__ or ""
    unnamed = {name for name in named if f"`{name}`" not in documentation}
    assert all(issubclass(getattr(errors, name), ApiError) for name in unnamed)
    assert "all other `ApiError`" in documentation
