"""What the operators did to Jobs and pods beside containers and variables, which `golden` compares."""

from __future__ import annotations

import pytest

from packages.v1_jobs.tests.conversion.jobs import converted, fields, job
from trainer.kube.objects import Object

BOTH = {"Master": 1, "Worker": 1}


def jobs_of(obj: Object) -> dict[str, Object]:
    """The replicated Jobs of a runtime."""
    runtime = converted(obj).runtime
    assert runtime is not None
    return {each["name"]: each for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]}


@pytest.mark.parametrize(("kind", "roles"), [("PyTorchJob", BOTH), ("JAXJob", {"Worker": 2}), ("XGBoostJob", BOTH)])
def test_drained_pods(kind: str, roles: dict[str, int]) -> None:
    """A pod that is drained or preempted is made again, also where none is after a failure."""
    obj = job(kind, roles)
    for role in next(each for name, each in obj["spec"].items() if name.endswith("ReplicaSpecs")).values():
        role["restartPolicy"] = "Never"
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    for each in jobs_of(obj).values():
        assert each["template"]["spec"]["podFailurePolicy"]["rules"] == [ignored]


def test_launcher() -> None:
    """It is replaced once it has failed, six times."""
    spec = jobs_of(job("MPIJob/v2beta1", {"Launcher": 1, "Worker": 2}))["launcher"]["template"]["spec"]
    assert (spec["backoffLimit"], spec["podReplacementPolicy"]) == (6, "Failed")


def test_init_container() -> None:
    """None waits for the name of the master: PyTorch tries again by itself."""
    assert "initContainers" not in str(jobs_of(job("PyTorchJob", BOTH)))


def test_scheduler_without_a_gang() -> None:
    """A gang scheduler that pods name is lost where no policy asks for a gang."""
    result = converted(job("JAXJob", {"Worker": 2}, pod={"schedulerName": "volcano"}))
    assert fields(result) == ["spec.jaxReplicaSpecs[Worker].template.spec.schedulerName"]
