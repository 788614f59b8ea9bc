"""Admission reads, checks and builds each object once, with few function calls."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import trainer as house
from tests.kube.webhook.serving import serving
from tests.webhooks.blueprints import RUNTIMES, blueprint, job, trainer
from tests.webhooks.nets import pipeline
from tests.webhooks.requests import admit
from trainer.api.schema_check import check_value
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import extract
from trainer.framework.pipeline import Pipeline
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.webhooks.handlers import AdmissionHandlers


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each step has run."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **options)

        return call

    def read(_cls: type[TrainJob], obj: Object, *, strict: bool = False) -> TrainJob:
        counts["reads strictly" if strict else "reads"] += 1
        return from_object(obj, strict=strict)

    from_object = TrainJob.from_object
    monkeypatch.setattr(TrainJob, "from_object", classmethod(read))
    monkeypatch.setattr(TrainJob, "semantic_errors", counted("semantic errors", TrainJob.semantic_errors))
    monkeypatch.setattr("trainer.framework.pipeline.extract", counted("extractions", extract))
    monkeypatch.setattr("trainer.api.pod_template.check_value", counted("pod template checks", check_value))
    return counts


class Counting:
    """A plugin that counts validations and builds."""

    name = "counting"

    def __init__(self, calls: Counter[str]) -> None:
        self._calls = calls

    def validate(self, *_: object) -> tuple[()]:
        """No findings."""
        self._calls["validations"] += 1
        return ()

    def build(self, *_: object) -> tuple[()]:
        """No objects."""
        self._calls["builds"] += 1
        return ()


ONE_PASS = {
    "reads strictly": 1,
    "semantic errors": 1,
    "extractions": 1,
    "pod template checks": 1,
    "validations": 1,
    "builds": 1,
}
OURS = "kubeflow.org/trainjob-controller"
STATUS: Object = {"conditions": [], "jobsStatus": []}


@pytest.mark.parametrize(
    ("obj", "old", "expected"),
    [
        pytest.param(trainer(numNodes=2), None, ONE_PASS, id="create"),
        pytest.param(job(), None, ONE_PASS, id="create-with-defaulted-nodes"),
        pytest.param(trainer(numNodes=3), trainer(numNodes=2), ONE_PASS | {"reads": 1}, id="update"),
        pytest.param(
            trainer(numNodes=3) | {"status": STATUS},
            trainer(numNodes=2) | {"status": STATUS},
            ONE_PASS | {"reads": 1},
            id="update-with-status",
        ),
        pytest.param(
            blueprint(),
            None,
            {"semantic errors": 0, "extractions": 1, "validations": 1, "builds": 1, "pod template checks": 0},
            id="runtime",
        ),
    ],
)
async def test_one_pass(obj: Object, old: Object | None, expected: dict[str, int], calls: Counter[str]) -> None:
    """The validator hands on what it has read; the old object is read for the plugins, which may compare."""
    plugins = Pipeline(Registry([*pipeline().plugins, Counting(calls)]))
    assert (await admit(obj, old, plugins=plugins)).allowed
    assert dict(calls) == {name: count for name, count in expected.items() if count}


class SharedRuntime:
    """A source of one runtime, whose model all TrainJobs share."""

    def __init__(self, obj: Object) -> None:
        self._runtime = read_runtime(CLUSTER_TRAINING_RUNTIMES, obj)

    async def of(self, _train_job: object) -> Runtime:
        """See `RuntimeSource.of`."""
        return self._runtime


@pytest.mark.parametrize(
    ("handler", "most"),
    [
        pytest.param("default_train_job", 150, id="mutating"),
        pytest.param("validate_train_job", 700, id="validating"),
    ],
)
async def test_few_calls(handler: str, most: int) -> None:
    """A review of a TrainJob that needs no change calls so few of our functions, those of the HTTP server included.

    The bounds are a third above what Python 3.11 counts; newer ones inline comprehensions.
    """
    admission = AdmissionHandlers(pipeline(), SharedRuntime(RUNTIMES["torch"]))
    obj = job(runtime="torch", trainer={"image": "a", "command": ["python", "train.py"]}, managedBy=OURS)
    obj["spec"]["runtimeRef"] |= {"apiGroup": CLUSTER_TRAINING_RUNTIMES.group, "kind": CLUSTER_TRAINING_RUNTIMES.kind}
    kind = {"group": "trainer.kubeflow.org", "version": "v2alpha1"}
    fields: dict[str, Any] = {
        "kind": kind | {"kind": "TrainJob"},
        "resource": kind | {"resource": "trainjobs"},
        "object": obj,
    }
    ours, calls, reviews = str(Path(house.__file__).parent), 0, 5

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(ours)

    async with serving(getattr(admission, handler)) as webhook:
        await webhook.review(namespace="default", **fields)
        sys.setprofile(count)
        try:
            answers = [await webhook.review(namespace="default", **fields) for _ in range(reviews)]
        finally:
            sys.setprofile(None)
    assert answers == [{"uid": "705ab4f5", "allowed": True}] * reviews
    assert calls / reviews < most
