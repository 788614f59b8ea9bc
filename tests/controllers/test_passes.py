"""A reconcile reads and builds a TrainJob, and calls each hook of a plugin, once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.controllers.test_plugin_defects import plugins
from tests.framework.samples import train_job_object
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.reports import StatusReport

if TYPE_CHECKING:
    import pytest

    from tests.controllers.conftest import Cluster
    from trainer.kube.objects import Object


async def test_one_pass(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the terminal condition, which decides whether anything is built and is part of the status."""
    calls: Counter[str] = Counter()

    def hook(name: str, result: object) -> Any:
        def call(*_: object) -> object:
            calls[name] += 1
            return result

        return call

    def read(_cls: type[TrainJob], obj: Object, *, strict: bool = False) -> TrainJob:
        calls["reads"] += 1
        return from_object(obj, strict=strict)

    from_object, semantic_errors = TrainJob.from_object, TrainJob.semantic_errors
    monkeypatch.setattr(TrainJob, "from_object", classmethod(read))
    monkeypatch.setattr(
        TrainJob, "semantic_errors", lambda job: (calls.update(["semantic errors"]), semantic_errors(job))[1]
    )
    counting = plugins(
        condition_types=frozenset(),
        validate=hook("validations", ()),
        build=hook("builds", ()),
        terminal_condition=hook("terminal conditions", None),
        train_job_status=hook("statuses", StatusReport()),
    )
    async with cluster.managed(counting):
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        calls.clear()
        await cluster.resync()
    assert calls == {
        "reads": 1,
        "semantic errors": 1,
        "validations": 1,
        "builds": 1,
        "terminal conditions": 1,
        "statuses": 1,
    }
