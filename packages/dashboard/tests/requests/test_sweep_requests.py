"""What the page of a sweep asks for, and does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from packages.dashboard.tests.conftest import UserClient, visiting
from packages.dashboard.tests.sweeps import V1_SWEEPS, cluster, record, sweep, trial
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import V2ALPHA1, Served

ASSIGNED = {"lr": "0.01", "layers": "3", "optimizer": "sgd"}
VALUES = list(ASSIGNED.values())
PATH = "/api/sweeps/default/digits"
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
BODY = {"uid": "uid-of-digits"}
VARIABLES = [{"name": f"KUBEFLOW_TRAINER_OPT_{name.upper()}", "value": value} for name, value in ASSIGNED.items()]


@pytest.fixture
def client() -> UserClient:
    return cluster()


async def test_rights(client: UserClient) -> None:
    """The page offers what the user may do."""
    client.add(sweep())
    client.denied = {"delete optimizationjobs"}
    async with visiting(client) as visitor:
        answer = await visitor.json(f"{PATH}/rights")
    assert answer == (200, {"suspend": True, "delete": False, "create": True})


async def test_suspend_and_resume(client: UserClient) -> None:
    """A sweep is suspended and resumed, and no other of its name."""
    client.add(sweep())
    async with visiting(client) as visitor:
        for verb, expected in (("suspend", True), ("resume", False)):
            assert (await visitor.json(f"{PATH}/{verb}", "POST", json=BODY))[0] == 200
            found = client.find(OPTIMIZATION_JOBS, "digits", "default")
            assert found is not None
            assert found["spec"]["suspend"] is expected
        assert (await visitor.json(f"{PATH}/suspend", "POST", json={"uid": "another"}))[0] == 409


async def test_field_that_is_not_kept(client: UserClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream's CRD drops what it does not know, and the page says so."""
    client.add(sweep())

    async def patch(*_: Any, **__: Any) -> Object:
        return sweep()

    monkeypatch.setattr(UserClient, "patch", patch)
    async with visiting(client) as visitor:
        status, answer = await visitor.json(f"{PATH}/suspend", "POST", json=BODY)
    assert (status, "has no spec.suspend" in answer["error"]) == (409, True)


async def test_delete(client: UserClient) -> None:
    """A sweep is deleted, and its trials in the background."""
    client.add(sweep())
    async with visiting(client) as visitor:
        assert (await visitor.json(PATH, "DELETE", json=BODY))[0] == 200
    assert client.find(OPTIMIZATION_JOBS, "digits", "default") is None


async def test_yaml(client: UserClient) -> None:
    """The YAML is that of the cluster."""
    client.add(sweep())
    async with visiting(client) as visitor:
        _, answer = await visitor.json(f"{PATH}/yaml")
    assert yaml.safe_load(answer["yaml"])["spec"]["numTrials"] == 20


@pytest.mark.parametrize(
    ("result", "is_there", "name"),
    [
        pytest.param({"trainJobName": "digits-trial-7"}, True, "digits-best", id="best"),
        pytest.param({"trainJobName": "digits-trial-7"}, False, "digits-best", id="best-is-gone"),
        pytest.param({"trainJobName": "digits-trial-3"}, True, "digits-trial-7-2", id="another"),
    ],
)
async def test_copy_of_trial(client: UserClient, result: Object, *, is_there: bool, name: str) -> None:
    """A trial is trained again as a TrainJob that is none, with its parameters, also when its own is gone."""
    of = client.add(sweep(trials=[record(7, VALUES, value="0.5")], result=result))
    if is_there:
        job = trial(7, ASSIGNED, [(1, 0.5)], of=of, state="Complete")
        job["spec"]["trainer"] = {"args": ["--epochs", "3"], "env": [{"name": "SEED", "value": "1"}, *VARIABLES]}
        job["metadata"]["annotations"]["note"] = "kept"
        client.add(job)
    async with visiting(client) as visitor:
        _, answer = await visitor.json(f"{PATH}/trials/7/copy")
    copy = yaml.safe_load(answer["yaml"])
    notes = {"annotations": {"note": "kept"}} if is_there else {}
    assert copy["metadata"] == {"name": name, "namespace": "default"} | notes
    assert copy["spec"] == {
        "runtimeRef": {"name": "plain"},
        "trainer": {"args": ["--epochs", "3"], "env": [{"name": "SEED", "value": "1"}, *VARIABLES]},
    }


@pytest.mark.parametrize(
    ("served", "version"),
    [pytest.param(V2ALPHA1, "v2alpha1", id="v2alpha1"), pytest.param(Served("v1alpha1"), "v1alpha1", id="v1alpha1")],
)
async def test_queue_of_copy(client: UserClient, served: Served, version: str) -> None:
    """What is made of the template waits in the queue of the sweep, where that version has it."""
    of = sweep(trials=[record(7, VALUES)])
    of["metadata"]["labels"] = QUEUE
    client.add(of)
    client.add(of | {"apiVersion": V1_SWEEPS.api_version})
    async with visiting(client, served) as visitor:
        _, answer = await visitor.json(f"{PATH}/trials/7/copy")
    copy = yaml.safe_load(answer["yaml"])
    assert copy["apiVersion"].endswith(version)
    place = copy["spec"] if version == "v2alpha1" else copy["metadata"]
    assert place["labels"] == QUEUE


async def test_variable_of_the_template(client: UserClient) -> None:
    """A parameter takes the place of a variable of its name."""
    template = {"spec": {"trainer": {"env": [{"name": "KUBEFLOW_TRAINER_OPT_LR", "value": "1"}]}}}
    client.add(sweep(spec={"trainJobTemplate": template}, trials=[record(7, VALUES)]))
    async with visiting(client) as visitor:
        _, answer = await visitor.json(f"{PATH}/trials/7/copy")
    assert yaml.safe_load(answer["yaml"])["spec"]["trainer"]["env"] == VARIABLES


@pytest.mark.parametrize("path", ["trials/8/copy", "trials/x/copy", "trials/77777/copy", "nothing"])
async def test_nothing(client: UserClient, path: str) -> None:
    """What is not there is not found."""
    client.add(sweep(trials=[record(7, VALUES)]))
    async with visiting(client) as visitor:
        assert (await visitor.json(f"{PATH}/{path}"))[0] == 404


async def test_clone_of_trial(client: UserClient) -> None:
    """A clone of a trial is no trial, and takes the name of none."""
    client.add(trial(7, ASSIGNED, [(1, 0.5)], of=sweep(), pruned="worse"))
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/trainjobs/default/digits-trial-7/copy")
    assert yaml.safe_load(answer["yaml"])["metadata"] == {"name": "digits-trial-7-2", "namespace": "default"}
