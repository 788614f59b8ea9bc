from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from tests.webhooks.blueprints import blueprint, job
from tests.webhooks.requests import request_of
from trainer.kube.errors import KubeError
from trainer.kube.field_errors import required
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.webhooks.metrics import AdmissionSeries

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.webhook.admission import AdmissionRequest

_REFUSAL = AdmissionResponse.deny([required("spec.trainer.image", "needed")])


def numbers(registry: CollectorRegistry, kind: str, operation: str) -> tuple[float | None, float | None]:
    """Requests and refusals."""
    labels = {"kind": kind, "operation": operation}
    return (
        registry.get_sample_value("trainer_admission_seconds_count", labels),
        registry.get_sample_value("trainer_admission_refusals_total", labels),
    )


@pytest.mark.parametrize(
    ("obj", "old", "answer", "expected"),
    [
        pytest.param(job(), None, AdmissionResponse.allow(), ("TrainJob", "CREATE", 1, 0), id="allowed"),
        pytest.param(job(), None, _REFUSAL, ("TrainJob", "CREATE", 1, 1), id="refused"),
        pytest.param(job(), job(), _REFUSAL, ("TrainJob", "UPDATE", 1, 1), id="update"),
        pytest.param(blueprint(), None, _REFUSAL, ("ClusterTrainingRuntime", "CREATE", 1, 1), id="runtime"),
    ],
)
async def test_counts_by_kind_and_operation(
    obj: Object, old: Object | None, answer: AdmissionResponse, expected: tuple[str, str, float, float]
) -> None:
    """Each decision is timed, and counted as well if it is a refusal."""
    registry = CollectorRegistry()

    async def decide(request: AdmissionRequest) -> AdmissionResponse:
        return answer

    assert await AdmissionSeries(registry).measured(obj["kind"], decide)(request_of(obj, old)) is answer
    kind, operation, *amounts = expected
    assert numbers(registry, kind, operation) == tuple(amounts)


async def test_what_was_not_decided_is_no_refusal() -> None:
    """A handler that fails took its time, but has not refused the object."""
    registry = CollectorRegistry()

    async def fail(request: AdmissionRequest) -> AdmissionResponse:
        raise KubeError("the API server does not answer")

    with pytest.raises(KubeError):
        await AdmissionSeries(registry).measured("TrainJob", fail)(request_of(job()))
    assert numbers(registry, "TrainJob", "CREATE") == (1, 0)


def test_series_are_there_before_the_first_request() -> None:
    """They begin with 0, so that the first refusal is an increase."""
    registry = CollectorRegistry()

    async def decide(request: AdmissionRequest) -> AdmissionResponse:
        return AdmissionResponse.allow()

    AdmissionSeries(registry).measured("TrainJob", decide)
    assert [numbers(registry, "TrainJob", each) for each in ("CREATE", "UPDATE")] == [(0, 0), (0, 0)]
