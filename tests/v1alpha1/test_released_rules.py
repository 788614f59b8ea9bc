"""The rules of Kubeflow Trainer (Go), as an API server asks about them: defaults, webhook, schema, webhook."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.definitions import schema_of
from tests.v1alpha1.released_rules import (
    ALL_RUNTIMES,
    IMAGE,
    INVALID,
    PRIORITY_CLASSES,
    RULES,
    SIZES,
    Case,
    injecting,
    stored,
)
from tests.v1alpha1.test_admission import job, patched, request
from tests.webhooks.blueprints import StaticRuntimes
from tests.webhooks.nets import pipeline
from trainer.kube.objects import Object
from trainer.v1alpha1.admission import V1Alpha1Admission
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.crds import crds
from trainer_kube_testing import ManualClock

SCHEMAS = {definition["spec"]["names"]["kind"]: schema_of(definition) for definition in crds("v1alpha1")}


async def has_priority_class(name: str) -> bool:
    return name in PRIORITY_CLASSES


async def answer(obj: Object, old: Object | None = None) -> tuple[int, str]:
    """Status and message of an API server, or its warnings where it accepts."""
    runtimes = StaticRuntimes([decoded(each) for each in ALL_RUNTIMES])
    admission = V1Alpha1Admission(pipeline("v1alpha1"), runtimes, ManualClock(), has_priority_class=has_priority_class)
    is_train_job, schema = obj["kind"] == "TrainJob", SCHEMAS[obj["kind"]]
    sent, stored = copy.deepcopy(obj), copy.deepcopy(old)
    assert schema.prune(sent) == []
    for each in filter(None, (sent, stored)):
        schema.default(each)
    default = admission.default_train_job if is_train_job else admission.default_runtime
    mutated = (await default(request(sent, stored))).object or sent
    if errors := schema.validate(mutated, stored):
        return INVALID, "; ".join(map(str, errors))
    validate = admission.validate_train_job if is_train_job else admission.validate_runtime
    response = await validate(request(mutated, stored))
    return (200, "; ".join(response.warnings)) if response.allowed else (response.status_code, response.message)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{rule}-{case.name}") for rule, cases in RULES.items() for case in cases]
)
async def test_rule(case: Case) -> None:
    """Who breaks a rule is refused with its status and text, and who keeps it is not."""
    status, text = await answer(case.object, case.old)
    assert status == case.status, text
    assert all(part in text for part in case.text.split("…")), text


@pytest.mark.parametrize(
    ("trainer", "is_suspended", "is_free"),
    [
        *(pytest.param(size, True, True, id=name) for name, size in SIZES.items()),
        *(pytest.param(size, False, False, id=f"{name}-while-it-runs") for name, size in SIZES.items()),
        pytest.param(SIZES["numNodes"] | {"image": "b"}, True, False, id="image-as-well"),
        pytest.param({"numNodes": 2}, True, False, id="no-image"),
    ],
)
async def test_what_the_released_trainer_does_not_let_change(
    trainer: Object, is_suspended: bool, is_free: bool
) -> None:
    """Number and resources of the nodes may change while suspended, and in the same request that resumes it."""
    for suspend in {is_suspended, False}:
        status, text = await answer(job(trainer=trainer, suspend=suspend), job(trainer=IMAGE, suspend=is_suspended))
        assert status == (200 if is_free else INVALID), text
        assert is_free or "field is immutable" in text


def words(number: int) -> list[str]:
    return ["a"] * number


def variables(number: int) -> list[Object]:
    return [{"name": f"A{index}"} for index in range(number)]


def some(number: int, **members: Any) -> list[Object]:
    """Members of a list with names of their own."""
    return [{"name": f"a{index}", **members} for index in range(number)]


def managed(number: int) -> list[Object]:
    return [{"manager": f"a.io/{index}"} for index in range(number)]


LIMITS: list[tuple[str, int, Any]] = [
    ("spec.runtimePatches", 16, lambda n: job(runtimePatches=managed(n))),
    ("spec.runtimePatches[0].manager", 253, lambda n: job(runtimePatches=[{"manager": "a/".ljust(n, "a")}])),
    ("spec.trainer.image", 500, lambda n: job(trainer={"image": "a" * n})),
    ("spec.trainer.command", 128, lambda n: job(trainer={"command": words(n)})),
    ("spec.trainer.command[0]", 1 << 17, lambda n: job(trainer={"command": ["a" * n]})),
    ("spec.trainer.args", 128, lambda n: job(trainer={"args": words(n)})),
    ("spec.trainer.args[0]", 1 << 17, lambda n: job(trainer={"args": ["a" * n]})),
    ("spec.trainer.env", 128, lambda n: job(trainer={"env": variables(n)})),
    ("spec.initializer.dataset.env", 128, lambda n: job("fetching", initializer={"dataset": {"env": variables(n)}})),
    ("spec.initializer.model.storageUri", 2048, lambda n: stored("model", "s3://".ljust(n, "a"))),
    ("spec.runtimeRef.name", 253, lambda n: job("a" * n)),
    ("spec.runtimeRef.kind", 253, lambda n: job(runtimeRef={"name": "a", "kind": "a" * n})),
    ("spec.runtimeRef.apiGroup", 253, lambda n: job(runtimeRef={"name": "a", "apiGroup": "a" * n})),
    ("serviceAccountName", 253, lambda n: job(**patched({"serviceAccountName": "a" * n}))),
    ("volumes", 128, lambda n: job(**patched({"volumes": some(n, emptyDir={})}))),
    ("containers", 64, lambda n: job(**patched({"containers": some(n)}))),
    ("initContainers", 64, lambda n: job(**patched({"initContainers": some(n)}))),
    ("imagePullSecrets", 64, lambda n: job(**patched({"imagePullSecrets": some(n)}))),
    ("tolerations", 128, lambda n: job(**patched({"tolerations": [{"key": "a"}] * n}))),
    ("schedulingGates", 16, lambda n: job(**patched({"schedulingGates": some(n)}))),
    ("containers[0].env", 128, lambda n: job(**patched({"containers": [{"name": "side", "env": variables(n)}]}))),
    ("containers[0].name", 253, lambda n: job(**patched({"containers": [{"name": "a" * n}]}))),
    ("replicatedJobs[0].name", 253, lambda n: job(**patched({}, "a" * n))),
    ("containerNames", 8, lambda n: injecting("r", *(f"a{index}" for index in range(n)))),
]
"""Where the schema limits sizes: the field, its limit, and an object of a size."""


@pytest.mark.parametrize(("field", "limit", "make"), [pytest.param(*each, id=each[0]) for each in LIMITS])
async def test_limit(field: str, limit: int, make: Callable[[int], Object]) -> None:
    """The schema accepts what has the largest size, and refuses one more."""
    status, text = await answer(make(limit))
    assert status != INVALID, text
    status, text = await answer(make(limit + 1))
    assert (status, field in text) == (INVALID, True), text
