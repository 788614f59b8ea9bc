"""The match conditions of the mutating webhooks: they are called where they have something to change or to say."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from tests.config.kustomized import V1ALPHA1, of_kind, rendered
from tests.webhooks.blueprints import StaticRuntimes, blueprint, job, replicated_job, trainer
from tests.webhooks.nets import pipeline
from tests.webhooks.requests import request_of
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.clock import SystemClock
from trainer.kube.objects import Object
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.v1alpha1.admission import V1Alpha1Admission
from trainer.v1alpha1.client import SERVED
from trainer.webhooks.handlers import AdmissionHandlers
from trainer_devcluster.apiserver.admission.conditions import MatchCondition, all_hold

SCALED: Final = {"status": {"scale": {"nodes": 4, "minNodes": 2, "maxNodes": 8}}}
ELASTIC: Final = {"numProcPerNode": "auto", "elasticPolicy": {}}


def webhooks_of(overlay: str) -> list[Object]:
    """The mutating webhooks that people install."""
    [configuration] = of_kind(rendered(overlay), "MutatingWebhookConfiguration")
    webhooks: list[Object] = configuration["webhooks"]
    return webhooks


def is_asked(overlay: str, obj: Object, old: Object | None) -> bool:
    """Whether the API server calls a webhook about an object."""
    plural = f"{obj['kind'].lower()}s"
    [webhook] = [each for each in webhooks_of(overlay) if each["rules"][0]["resources"] == [plural]]
    conditions = [MatchCondition.compile(each["name"], each["expression"]) for each in webhook["matchConditions"]]
    return all_hold(tuple(conditions), {"object": obj, "oldObject": old})


def limits(**amounts: Any) -> Object:
    return trainer(resourcesPerNode={"limits": amounts})


def policy(**fields: Any) -> Object:
    return blueprint(policy=fields)


@pytest.mark.parametrize(
    ("obj", "old"),
    [
        pytest.param(job(), None, id="new"),
        pytest.param(trainer(image="a", numNodes=2, numProcPerNode="4"), None, id="settings"),
        pytest.param(trainer(numProcPerNode=4), None, id="number of processes"),
        pytest.param(trainer(numProcPerNode=True), None, id="no number"),
        pytest.param(limits(memory="200Mi", cpu=2, gpu="1"), None, id="quantities"),
        pytest.param(limits(cpu=2, memory="200MB"), None, id="bytes"),
        pytest.param(trainer(resourcesPerNode={"requests": {"memory": "1 GiBytes"}}), None, id="requested bytes"),
        pytest.param(job(labels={"a": "b"}), job(), id="update"),
        pytest.param(trainer(numProcPerNode=4), trainer(numProcPerNode="2"), id="another number of processes"),
        pytest.param(trainer(args=["y"]), trainer(numNodes=4) | SCALED, id="replacement of a scaled one"),
        pytest.param(job(), trainer(numNodes=4) | SCALED, id="replacement without settings"),
        pytest.param(trainer(numNodes=3), trainer(numNodes=4) | SCALED, id="scaled"),
        pytest.param(job(), job() | SCALED, id="not scaled yet"),
        pytest.param(job(), trainer(numNodes=4), id="replacement of a fixed one"),
        pytest.param(policy(numNodes=2, torch={"numProcPerNode": "auto"}), None, id="runtime"),
        pytest.param(blueprint(), None, id="runtime without a policy"),
        pytest.param(policy(), None, id="empty policy"),
        pytest.param(policy(jax={}), None, id="no nodes"),
        pytest.param(policy(torch=ELASTIC), None, id="elastic"),
        pytest.param(policy(numNodes=1, torch={"numProcPerNode": 8}), None, id="processes of a runtime"),
        pytest.param(policy(torch=ELASTIC | {"numProcPerNode": 8}), None, id="processes of an elastic runtime"),
        pytest.param(policy(jax={}), policy(jax={}), id="the same runtime"),
        pytest.param(policy(jax={}), policy(numNodes=1, jax={}), id="replacement of a runtime"),
        *(
            pytest.param(kind | {"spec": spec}, None, id=f"{kind['kind']}, {name}")
            for kind in (job(), blueprint())
            for name, spec in {
                "null": None,
                "text": "x",
                "number of trainer": {"trainer": 1, "mlPolicy": 1},
                "lists": {"trainer": {"resourcesPerNode": []}, "mlPolicy": {"numNodes": 1, "torch": []}},
                "limits": {"trainer": {"resourcesPerNode": {"limits": ["1MB"], "requests": "1MB"}}},
            }.items()
        ),
    ],
)
def test_asked_where_there_is_something_to_say(obj: Object, old: Object | None) -> None:
    """The webhook is called for what it changes or warns of, and for nothing else, whatever the object looks like."""
    handlers = AdmissionHandlers(pipeline(), StaticRuntimes())
    default = handlers.default_train_job if obj["kind"] == "TrainJob" else handlers.default_runtime
    answer = asyncio.run(default(request_of(obj, old)))
    assert is_asked("default", obj, old) == (answer != AdmissionResponse.allow())


@pytest.mark.parametrize(
    ("obj", "old"),
    [
        pytest.param(trainer(numProcPerNode=4, args=["a"]), trainer(numProcPerNode=4), id="stored number"),
        pytest.param(blueprint(replicated_job(job_spec={"parallelism": 3}), policy={"jax": {}}), None, id="template"),
        pytest.param(trainer(resourcesPerNode={"limits": {"memory": "x" * 99 + "B"}}), None, id="no number of bytes"),
    ],
)
def test_asked_in_vain(obj: Object, old: Object | None) -> None:
    """These few are asked for although nothing changes: the expressions stay short."""
    assert is_asked("default", obj, old)


PATCH: Final = {"manager": "a.b/c", "trainingRuntimeSpec": {}}
TIMED: Final = PATCH | {"time": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("spec", "old"),
    [
        pytest.param({}, None, id="new"),
        pytest.param({"runtimePatches": [PATCH]}, None, id="new with patches"),
        pytest.param({"suspend": True}, {"suspend": False}, id="update"),
        pytest.param({"runtimePatches": [TIMED], "suspend": True}, {"runtimePatches": [TIMED]}, id="same patches"),
        pytest.param({"runtimePatches": [PATCH]}, {"runtimePatches": [TIMED]}, id="sent back without a time"),
        pytest.param({"runtimePatches": [PATCH]}, {}, id="first patch"),
        pytest.param({}, {"runtimePatches": [TIMED]}, id="patches removed"),
        pytest.param(None, None, id="null"),
        pytest.param("x", None, id="text"),
    ],
)
def test_released_version(spec: object, old: Object | None) -> None:
    """With v1alpha1 the webhook is called where runtime patches change."""
    kind = {"apiVersion": SERVED[TRAIN_JOBS].api_version, "kind": "TrainJob", "metadata": {"name": "a"}}
    obj, former = kind | {"spec": spec}, None if old is None else kind | {"spec": old}
    handlers = V1Alpha1Admission(pipeline(), StaticRuntimes(), SystemClock())
    answer = asyncio.run(handlers.default_train_job(request_of(obj, former)))
    assert is_asked(V1ALPHA1, obj, former) == (answer != AdmissionResponse.allow())


def test_runtimes_of_the_released_version() -> None:
    """All their defaults are in the schemas."""
    assert [each["rules"][0]["resources"] for each in webhooks_of(V1ALPHA1)] == [["trainjobs"]]
