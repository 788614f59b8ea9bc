"""PriorityClasses that a manager may not see, and those behind one of the system; for all else see `released_rules`."""

from __future__ import annotations

import pytest

from tests.v1alpha1.test_admission import NODE, replicated_job, runtime
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import Object
from trainer.kube.resource import PRIORITY_CLASSES
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.policies import priority_classes_of, priority_errors
from trainer_kube_testing import FakeClient


def read(obj: Object) -> Runtime:
    """A runtime as it is read from the cluster."""
    return read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(obj))


def volcano(*classes: str, queue: str | None = None) -> Runtime:
    """A runtime with a gang of Volcano."""
    jobs = [replicated_job(f"job-{index}", "node") for index, _ in enumerate(classes)]
    for each, name in zip(jobs, classes, strict=True):
        each["template"]["spec"]["template"]["spec"]["priorityClassName"] = name
    obj = runtime("gang", {"torch": {}}, *(jobs or [NODE]))
    obj["spec"]["podGroupPolicy"] = {"volcano": {}}
    if queue is not None:
        obj["spec"]["template"]["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": queue}}
    return read(obj)


@pytest.mark.parametrize(
    ("classes", "missing"),
    [
        pytest.param(["high"], [], id="present"),
        pytest.param(["high", "lost", "gone"], ["lost", "gone"], id="missing"),
        pytest.param(["lost", "system-node-critical", "gone"], ["lost"], id="none after one of the system"),
    ],
)
async def test_priority_classes(classes: list[str], missing: list[str]) -> None:
    """The cluster has the PriorityClasses of a gang."""
    client = FakeClient(resources=[PRIORITY_CLASSES])
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1}
    await client.create(PRIORITY_CLASSES, high)
    errors = await priority_errors(volcano(*classes), priority_classes_of(client))
    words = 'PriorityClass "{0}" doesn\'t exist'
    assert [str(error).partition(": create")[0] for error in errors] == [
        f'spec.templateSpec.priorityClassName: Invalid value: "{name}": {words.format(name)}' for name in missing
    ]
    assert await priority_errors(read(runtime("plain", {"torch": {}}, NODE)), priority_classes_of(client)) == []


@pytest.mark.parametrize(("error", "exists"), [(ForbiddenError(403, "no"), True), (NotFoundError(404, "no"), False)])
async def test_priority_classes_that_cannot_be_seen(error: ForbiddenError | NotFoundError, exists: bool) -> None:
    """A manager with the released rights, which lack these, refuses nothing because of that."""
    client = FakeClient(resources=[PRIORITY_CLASSES])
    client.faults.fail(error, verb="get")
    assert await priority_classes_of(client)("high") is exists
