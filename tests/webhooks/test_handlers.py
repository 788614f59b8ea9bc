"""Requests and responses of the webhooks, and their series."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes, blueprint, job, trainer
from tests.webhooks.nets import pipeline
from tests.webhooks.requests import request_of
from trainer.kube.errors import KubeError
from trainer.kube.field_errors import required
from trainer.kube.objects import Object
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.webhooks.handlers import AdmissionHandlers, AdmissionSeries


@pytest.fixture
def admission() -> AdmissionHandlers:
    """The webhooks, with the runtimes of the tables."""
    return AdmissionHandlers(pipeline(), StaticRuntimes(RUNTIMES.values()))


@pytest.mark.parametrize("handler", ["default_train_job", "default_runtime", "validate_train_job", "validate_runtime"])
async def test_nothing_to_say(admission: AdmissionHandlers, handler: str) -> None:
    """Deletions and subresources are allowed, if a webhook configuration sends them."""
    obj = job() if handler.endswith("job") else blueprint()
    deletion = replace(request_of(obj, obj), operation=Operation.DELETE, object=None)
    status = request_of(obj | {"spec": None}, obj, subresource="status")

    for request in (deletion, status):
        assert await getattr(admission, handler)(request) == AdmissionResponse.allow()


async def test_defaults_are_sent_back(admission: AdmissionHandlers) -> None:
    """The mutating webhooks return a copy with defaults."""
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
async def test_sparse_metadata(admission: AdmissionHandlers, metadata: Object) -> None:
    """The namespace comes from the request, and the name may be generated later."""
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
        pytest.param(
            {"limits": {"n" * 9999: "1MB"}},
            [f"spec.trainer.resourcesPerNode.limits[{'n' * 63}]: 1MB: write 1M or 1Mi"],
            id="long",
        ),
    ],
)
async def test_warnings_about_quantities(admission: AdmissionHandlers, resources: Object, warnings: list[str]) -> None:
    """The mutating webhook is called before the API server checks the schema, and kubectl shows its warnings."""
    answer = await admission.default_train_job(request_of(trainer(resourcesPerNode=resources)))
    assert answer.allowed
    assert list(answer.warnings) == warnings


async def test_warnings_about_quantities_are_few(admission: AdmissionHandlers) -> None:
    """There are four warnings at most."""
    many = {f"example.com/{number}": "1MB" for number in range(1000)}
    answer = await admission.default_train_job(request_of(trainer(resourcesPerNode={"limits": many})))
    assert len(answer.warnings) == 4


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
        pytest.param(blueprint(), None, _REFUSAL, ("ClusterTrainingRuntime", "CREATE", 1, 1), id="runtime"),
    ],
)
async def test_counts_by_kind_and_operation(
    obj: Object, old: Object | None, answer: AdmissionResponse, expected: tuple[str, str, float, float]
) -> None:
    """Each decision is timed, and counted if it is a refusal."""
    registry = CollectorRegistry()

    async def decide(request: AdmissionRequest) -> AdmissionResponse:
        return answer

    assert await AdmissionSeries(registry).measured(obj["kind"], decide)(request_of(obj, old)) is answer
    kind, operation, *amounts = expected
    assert numbers(registry, kind, operation) == tuple(amounts)


async def test_what_was_not_decided_is_no_refusal() -> None:
    """A handler that fails is timed, and counts no refusal."""
    registry = CollectorRegistry()

    async def fail(request: AdmissionRequest) -> AdmissionResponse:
        raise KubeError("the API server does not answer")

    with pytest.raises(KubeError):
        await AdmissionSeries(registry).measured("TrainJob", fail)(request_of(job()))
    assert numbers(registry, "TrainJob", "CREATE") == (1, 0)


def test_series_are_there_before_the_first_request() -> None:
    """They are exposed with 0, so that the first refusal is an increase."""
    registry = CollectorRegistry()

    async def decide(request: AdmissionRequest) -> AdmissionResponse:
        return AdmissionResponse.allow()

    AdmissionSeries(registry).measured("TrainJob", decide)
    assert [numbers(registry, "TrainJob", each) for each in ("CREATE", "UPDATE")] == [(0, 0), (0, 0)]
