"""Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from devcluster.tests.apiserver.http_client import Api
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
    """Numbers that no election could work with are refused, in the words of a real API server."""
    path = LEASES
    if verb == "PUT":
        await api("POST", LEASES, lease())
        path = f"{LEASES}/l"
    answer = await api(verb, path, lease(**spec))
    assert answer.code == 422
    assert answer.body["message"] == f'Lease.coordination.k8s.io "l" is invalid: {problem}'


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"leaseDurationSeconds": 1, "leaseTransitions": 0, "holderIdentity": ""}, id="released"),
    ],
)
async def test_accepted(api: Api, spec: Object) -> None:
    """All fields are optional; a leader that stops leaves an empty holder."""
    assert (await api("POST", LEASES, lease(**spec))).code == 201


@pytest.mark.parametrize("field", ["renewTime", "acquireTime"])
async def test_times(api: Api, field: str) -> None:
    """A time that is none is refused."""
    assert (await api("POST", LEASES, lease(**{field: "yesterday"}))).code == 400
