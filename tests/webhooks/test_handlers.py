"""Requests that are none of the webhooks' business, and what they make of those that are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes, blueprint, job, trainer
from tests.webhooks.nets import pipeline
from tests.webhooks.requests import request_of
from trainer.kube.webhook.admission import AdmissionResponse, Operation
from trainer.webhooks.handlers import Admission

if TYPE_CHECKING:
    from trainer.kube.objects import Object


@pytest.fixture
def admission() -> Admission:
    """The webhooks, with the runtimes of the tables."""
    return Admission(pipeline(), StaticRuntimes(RUNTIMES.values()))


@pytest.mark.parametrize("handler", ["default_train_job", "default_runtime", "validate_train_job", "validate_runtime"])
async def test_nothing_to_say(admission: Admission, handler: str) -> None:
    """Deletions and subresources pass, as they would if somebody had the API server ask about them."""
    obj = job() if handler.endswith("job") else blueprint()
    deletion = replace(request_of(obj, obj), operation=Operation.DELETE, object=None)
    status = request_of(obj | {"spec": None}, obj, subresource="status")

    for request in (deletion, status):
        assert await getattr(admission, handler)(request) == AdmissionResponse.allow()


async def test_defaults_are_sent_back(admission: Admission) -> None:
    """The mutating webhooks answer with the object that has defaults, and leave the one that came as it was."""
    request = request_of(trainer(numProcPerNode=1))

    response = await admission.default_train_job(request)

    assert response.object is not None
    assert response.object["spec"]["trainer"] == {"numProcPerNode": "1"}
    assert request.object == trainer(numProcPerNode=1)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"name": "demo"}, id="no-namespace"),
        pytest.param({"generateName": "demo-", "namespace": "default"}, id="no-name-yet"),
    ],
)
async def test_sparse_metadata(admission: Admission, metadata: Object) -> None:
    """The namespace comes from the request, and a name may still have to be made."""
    request = replace(request_of(job() | {"metadata": metadata}), namespace="default")

    assert (await admission.validate_train_job(request)).allowed


@pytest.mark.parametrize(
    ("resources", "warnings"),
    [
        pytest.param({"limits": {"memory": "200Mi"}}, [], id="as it should be"),
        pytest.param(
            {"limits": {"memory": "200MB", "cpu": 2}, "requests": {"memory": "1GiB"}},
            [
                "spec.trainer.resourcesPerNode.limits[memory]: 200MB: write 200M or 200Mi",
                "spec.trainer.resourcesPerNode.requests[memory]: 1GiB: write 1Gi",
            ],
            id="bytes",
        ),
        pytest.param({"limits": ["200MB"], "requests": "200MB"}, [], id="wrong in another way"),
        pytest.param(
            {"limits": {"n" * 9999: "1MB"}},
            [f"spec.trainer.resourcesPerNode.limits[{'n' * 63}]: 1MB: write 1M or 1Mi"],
            id="long",
        ),
    ],
)
async def test_amounts_are_told_before_the_schema_refuses_them(
    admission: Admission, resources: Object, warnings: list[str]
) -> None:
    """The mutating webhook is asked before the API server compares patterns, and kubectl shows its warnings."""
    answer = await admission.default_train_job(request_of(trainer(resourcesPerNode=resources)))
    assert answer.allowed
    assert list(answer.warnings) == warnings


async def test_amounts_are_told_a_few_times(admission: Admission) -> None:
    """However many there are."""
    many = {f"example.com/{number}": "1MB" for number in range(1000)}
    answer = await admission.default_train_job(request_of(trainer(resourcesPerNode={"limits": many})))
    assert len(answer.warnings) == 4
