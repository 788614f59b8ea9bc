"""What the end-to-end tests read from an audit log, that of a kube-apiserver included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from e2e import audit

if TYPE_CHECKING:
    from pathlib import Path

MANAGER = {"username": audit.USER}
PODS = {"resource": "pods", "namespace": "team", "apiVersion": "v1"}
DONE = {"metadata": {}, "code": 200}


def event(**members: Any) -> dict[str, Any]:
    """A request of the manager that has been answered."""
    present = {"verb": "list", "requestURI": "/api/v1/pods", "user": MANAGER, "objectRef": PODS, "responseStatus": DONE}
    return {name: value for name, value in (present | members).items() if value is not None}


def refusal(message: str, code: int = 403) -> dict[str, Any]:
    """What a request was answered with that failed."""
    return {"metadata": {}, "code": code, "message": message}


def read(path: Path, *events: dict[str, Any], end: str = "\n") -> list[audit.Request]:
    """The requests of the manager in a log of these events."""
    path.write_text("\n".join(map(json.dumps, events)) + end)
    return list(audit.requests_of_manager(path))


@pytest.mark.parametrize(
    ("reported", "count"),
    [
        pytest.param(event(), 1, id="answered"),
        pytest.param(event(stage="RequestReceived", responseStatus=None), 0, id="not-answered-yet"),
        pytest.param(event(user={"username": "somebody"}), 0, id="of-somebody-else"),
        pytest.param(event(user={"username": "admin"}, impersonatedUser=MANAGER), 1, id="impersonated"),
        pytest.param(event(impersonatedUser={"username": "somebody"}), 0, id="impersonates"),
        pytest.param(event(objectRef=None, requestURI="/version"), 1, id="for-no-resource"),
    ],
)
def test_requests(tmp_path: Path, reported: dict[str, Any], count: int) -> None:
    """Those that the manager sent and that have been answered, for resources and for paths."""
    assert len(read(tmp_path / "log", reported)) == count


def test_a_line_that_is_still_written(tmp_path: Path) -> None:
    """It is left alone; those before it count."""
    assert len(read(tmp_path / "log", event(), event(), end="")) == 1


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        pytest.param(event(), False, id="allowed"),
        pytest.param(
            event(responseStatus=refusal('pods is forbidden: User "m" cannot list resource "pods" in API group ""')),
            True,
            id="no-right",
        ),
        pytest.param(
            event(objectRef=None, responseStatus=refusal('forbidden: User "m" cannot get path "/version"')),
            True,
            id="no-right-to-a-path",
        ),
        pytest.param(event(responseStatus=refusal('pods "a" is forbidden: exceeded quota: q')), False, id="quota"),
        pytest.param(event(responseStatus=refusal('"a" cannot list resource "b"', 404)), False, id="not-found"),
    ],
)
def test_refusals(tmp_path: Path, reported: dict[str, Any], expected: bool) -> None:
    """Only requests without the right are refused."""
    [request] = read(tmp_path / "log", reported)
    assert request.is_refused is expected


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        pytest.param(audit.Grant("list", "", "pods"), True, id="the-same"),
        pytest.param(audit.Grant("watch", "", "pods"), False, id="another-verb"),
        pytest.param(audit.Grant("list", "batch", "pods"), False, id="another-group"),
        pytest.param(audit.Grant("list", "", "pods/log"), False, id="another-subresource"),
        pytest.param(audit.Grant("list", "", "pods", namespace="team"), True, id="in-its-namespace"),
        pytest.param(audit.Grant("list", "", "pods", namespace="other"), False, id="in-another-namespace"),
        pytest.param(audit.Grant("list", "", "pods", ("a",)), False, id="named"),
    ],
)
def test_grants(tmp_path: Path, grant: audit.Grant, expected: bool) -> None:
    """Only what a request needs has been used by it."""
    [request] = read(tmp_path / "log", event())
    assert grant.allows(request) is expected


@pytest.mark.parametrize(("code", "expected"), [(201, True), (200, False)])
def test_apply(tmp_path: Path, code: int, expected: bool) -> None:
    """One that has made its object has used the right to create."""
    [request] = read(tmp_path / "log", event(verb="patch", responseStatus={"metadata": {}, "code": code}))
    assert audit.Grant("create", "", "pods").allows(request) is expected
    assert audit.Grant("patch", "", "pods").allows(request)
