"""The manager with the component runs sweeps, by Optuna."""

from __future__ import annotations

import sys

import anyio
import pytest

from packages.sweeps.tests.jobs import curve_text, sweep_object
from tests.configurations import bare
from trainer.api.metric_curve import CURVE
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object, annotations_of, name_of
from trainer.manager import build_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, settle
from trainer_sweeps.component import register

RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS, OPTIMIZATION_JOBS)


async def parameters_of_a_sweep(**algorithm: Object) -> list[str]:
    """The parameters of the trials of a sweep whose trials all end, in order."""
    clock = ManualClock()
    client = FakeClient(resources=RESOURCES, clock=clock)
    manager = build_manager(client, bare(), components=[register], clock=clock)
    client.add(sweep_object(searchAlgorithm=algorithm, numTrials=5, parallelTrials=2))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await settle()
        for number in range(1, 6):
            trial = client.find(TRAIN_JOBS, f"demo-trial-{number}", "default")
            assert trial is not None
            condition = {"type": "Complete", "status": "True", "reason": "Ended", "message": ""}
            trial["status"] = {"conditions": [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
            curve = {CURVE: curve_text((1, f"0.{number}"), is_final=True)}
            trial["metadata"]["annotations"] = annotations_of(trial) | curve
            client.add(trial)
            await settle()
        (sweep,) = client.objects(OPTIMIZATION_JOBS)
        assert sweep["status"]["state"] == "Complete"
        tasks.cancel_scope.cancel()
    trials = sorted(client.objects(TRAIN_JOBS), key=name_of)
    return [str(trial["spec"]["trainer"]["env"]) for trial in trials]


@pytest.mark.parametrize("algorithm", ["random", "tpe"])
async def test_a_sweep_can_be_repeated(algorithm: str) -> None:
    """The same seed and the same results give the same trials, in another process as well."""
    options = {"seed": 3} | ({} if algorithm == "random" else {"startupTrials": 2})
    first = await parameters_of_a_sweep(**{algorithm: options})
    assert len(set(first)) == 5
    assert await parameters_of_a_sweep(**{algorithm: options}) == first
    assert algorithm == "random" or "optuna" in sys.modules
