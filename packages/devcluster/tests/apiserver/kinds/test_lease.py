"""Leases."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.http_client import Api
from trainer.kube.objects import Object

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
POSITIVE, COUNT = "must be greater than 0", "must be greater than or equal to 0"


def lease(**spec: object) -> Object:
    """A Lease."""
    return {"metadata": {"name": "l"}, "spec": spec}


@pytest.mark.parametrize("verb", ["POST", "PUT"])
@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"leaseDurationSeconds": 0}, f"spec.leaseDurationSeconds: Invalid value: 0: {POSITIVE}", id="0"),
        pytest.param(
            {"leaseDurationSeconds": -1}, f"spec.leaseDurationSeconds: Invalid value: -1: {POSITIVE}", id="negative"
        ),
        pytest.param({"leaseTransitions": -1}, f"spec.leaseTransitions: Invalid value: -1: {COUNT}", id="transitions"),
        pytest.param(
            {"leaseDurationSeconds": 0, "leaseTransitions": -2},
            f"[spec.leaseDurationSeconds: Invalid value: 0: {POSITIVE}, "
            f"spec.leaseTransitions: Invalid value: -2: {COUNT}]",
            id="both",
        ),
    ],
)
async def test_refused(api: Api, verb: str, spec: Object, problem: str) -> None:
    """Numbers that no election can work with are refused, in the words of a real API server."""
    path, body = LEASES, lease(**spec)
    if verb == "PUT":
        made = await api("POST", LEASES, lease())
        path, body = f"{LEASES}/l", {**made.body, "spec": spec}
    answer = await api(verb, path, body)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == f'Lease.coordination.k8s.io "l" is invalid: {problem}'


@pytest.mark.parametrize("field", ["renewTime", "acquireTime"])
@pytest.mark.parametrize("value", ["yesterday", "2026-01-01T00:00:00Z", 1])
async def test_times(api: Api, field: str, value: object) -> None:
    """A time that is none, or has no microseconds, cannot be decoded."""
    answer = await api("POST", LEASES, lease(**{field: value}))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
