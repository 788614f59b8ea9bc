"""How many processes MPI starts on every node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, train_job
from tests.plugins.mpi_samples import findings, mpi_runtime
from trainer.framework.building.extraction import extract
from trainer.plugins.mpi.processes import slots_per_node

GPUS = {"requests": {"nvidia.com/gpu": 4}, "limits": {"nvidia.com/gpu": 4}}


def blueprint(policy: Any, resources: Any) -> Any:
    """A runtime whose nodes have these resources."""
    node = replicated_job("node", {"name": "trainer", "resources": resources})
    return mpi_runtime(node, replicated_job("launcher"), **policy)


@pytest.mark.parametrize(
    ("trainer", "policy", "resources", "slots"),
    [
        pytest.param({}, {}, {}, 1, id="nothing-said"),
        pytest.param({}, {"numProcPerNode": 5}, GPUS, 5, id="runtime"),
        pytest.param({"numProcPerNode": 3}, {"numProcPerNode": 5}, GPUS, 3, id="TrainJob-over-runtime"),
        pytest.param({"numProcPerNode": "3"}, {}, {}, 3, id="number-as-string"),
        pytest.param({}, {}, GPUS, 4, id="GPUs"),
        pytest.param({}, {}, {"limits": {"cpu": 8}}, 1, id="CPUs-do-not-count"),
        pytest.param({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}, {}, GPUS, 2, id="GPUs-of-the-TrainJob"),
        pytest.param({"numProcPerNode": "gpu"}, {"numProcPerNode": 5}, GPUS, 4, id="gpu"),
        pytest.param({}, {}, {"limits": {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-cores": 50}}, 1, id="shares"),
        pytest.param({}, {}, {"limits": {"nvidia.com/mig-1g.5gb": 2}}, 2, id="slices"),
        pytest.param({"numProcPerNode": "auto"}, {"numProcPerNode": 5}, GPUS, 4, id="auto"),
        pytest.param({"numProcPerNode": "auto"}, {"numProcPerNode": 5}, {}, 1, id="auto-without-GPUs"),
    ],
)
def test_slots(trainer: Any, policy: Any, resources: Any, slots: int) -> None:
    """The TrainJob's number wins over the runtime's; without both there is a process for each GPU, or one."""
    job = train_job(trainer=trainer)
    assert slots_per_node(extract(job, blueprint(policy, resources)), job) == slots


@pytest.mark.parametrize(
    ("wish", "resources", "errors"),
    [
        pytest.param(
            "cpu",
            {"limits": {"cpu": 8}},
            [
                (
                    'spec.trainer.numProcPerNode: Invalid value: "cpu": must be an integer, gpu or auto: '
                    "an MPI runtime does not count CPUs"
                )
            ],
            id="cpu",
        ),
        pytest.param(
            "gpu",
            {},
            [
                (
                    'spec.trainer.numProcPerNode: Invalid value: "gpu": the nodes have no GPUs; '
                    "ask for some in resourcesPerNode, or write an integer"
                )
            ],
            id="gpu-without-GPUs",
        ),
        pytest.param("gpu", GPUS, [], id="gpu"),
        pytest.param("auto", {}, [], id="auto"),
        pytest.param(8, {}, [], id="number"),
    ],
)
def test_wishes_that_are_no_number(wish: Any, resources: Any, errors: list[str]) -> None:
    """What does not become a number is refused."""
    assert findings(blueprint({}, resources), trainer={"numProcPerNode": wish}) == errors
