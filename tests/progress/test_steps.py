"""Initializers and the exporter beside a training."""

from __future__ import annotations

from typing import Any

import pytest

from tests.progress.conftest import FIRST_POD, KEY, Training
from tests.progress.pods import jobset, pod, running, terminated
from trainer.api.progress import MONITORING
from trainer.api.progress_tags import TAG
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import STEP_FIELDS
from trainer.kube.client import ObjectRequest
from trainer.kube.errors import InternalError
from trainer.kube.objects import Object
from trainer.kube.resource import PODS
from trainer_kube_testing import FakeClient, settle

DATA, MODEL, EXPORTER = STEP_FIELDS
INITIALIZER_POD = "digits-initializer-0-0-vwxyz"


def initializer(*containers: str, **more: Any) -> Object:
    return pod(INITIALIZER_POD, "initializer", containers=list(containers or (DATA,)), **more)


def steps(training: Training) -> Object:
    """What the TrainJob shows of its steps, without times."""
    status = training.train_job.get("status") or {}
    shown = {name: dict(status[name]) for name in STEP_FIELDS.values() if name in status}
    for each in shown.values():
        each.pop("lastUpdatedTime", None)
    return shown


async def say(training: Training, text: str, container: str = DATA) -> None:
    training.log(INITIALIZER_POD, container).write(f"{TAG} {text}\n".encode())
    await training.read()


async def begin(training: Training, *containers: str, since: str = "") -> None:
    """The containers of the initializer run."""
    names = containers or (DATA,)
    for name in names:
        training.log(INITIALIZER_POD, name)
    await training.put(initializer(*names, state=running(since or training.since)))


@pytest.fixture
def training(training: Training) -> Training:
    training.client.add(jobset("initializer", "node"))
    return training


async def test_from_data_to_training(training: Training) -> None:
    """Data that is fetched has a status of its own, which stays while the training reports."""
    async with training.managed():
        await begin(training)
        assert steps(training) == {"dataInitializerStatus": {"state": "Running"}}
        await training.clock.advance(5)
        await say(training, '{"progressPercentage": 40, "estimatedRemainingSeconds": 90}')
        assert steps(training)["dataInitializerStatus"] == {
            "state": "Running",
            "progressPercentage": 40,
            "estimatedRemainingSeconds": 90,
            "estimatedRemainingTimeSummary": "1 minute 30 seconds",
        }
        assert training.shown == {}
        await training.clock.advance(5)
        await say(training, '{"progressPercentage": 100}')
        training.log(INITIALIZER_POD, DATA).end()
        await training.put(initializer(state=terminated(since=training.since), phase="Succeeded"))
        await training.clock.advance(5)
        assert steps(training) == {"dataInitializerStatus": {"state": "Complete"}}
        assert training.series("active_streams") == 0
        await training.start()
        await training.report('{"progressPercentage": 3}')
        await training.clock.advance(5)
        assert training.shown == {"progressPercentage": 3}
        assert steps(training) == {"dataInitializerStatus": {"state": "Complete"}}
        assert training.log_requests[-1] == (FIRST_POD, None)


async def test_both_in_one_pod(training: Training) -> None:
    """The containers of one pod are steps, each with its own log."""
    async with training.managed():
        await begin(training, DATA, MODEL)
        assert training.series("active_streams") == 2
        await say(training, '{"progressPercentage": 40}')
        await training.clock.advance(5)
        await say(training, '{"progressPercentage": 7}', MODEL)
        await training.clock.advance(5)
        assert {name: each["progressPercentage"] for name, each in steps(training).items()} == {
            "dataInitializerStatus": 40,
            "modelInitializerStatus": 7,
        }


async def test_exporter(training: Training) -> None:
    """The exporter follows the training, whose progress stays."""
    training.client.add(jobset("node", "exporter"))
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 100}')
        await training.end()
        training.log("digits-exporter-0-0-vwxyz", EXPORTER)
        exporter = pod("digits-exporter-0-0-vwxyz", "exporter", containers=[EXPORTER], state=running(training.since))
        await training.put(exporter)
        await training.clock.advance(5)
        assert steps(training) == {"exporterStatus": {"state": "Running"}}
        assert training.percentage == 100


@pytest.mark.parametrize(
    ("end", "state"),
    [
        pytest.param({"state": terminated(1), "phase": "Failed"}, "Failed", id="failed"),
        pytest.param({"state": terminated(0), "phase": "Succeeded"}, "Complete", id="complete"),
        pytest.param(
            {"state": {"waiting": {}}, "last_state": terminated(1), "restart_policy": "OnFailure", "phase": "Running"},
            "Running",
            id="started-again",
        ),
    ],
)
async def test_states(training: Training, end: dict[str, Any], state: str) -> None:
    """The state of a step is that of its container; one that tells nothing has nothing but the state."""
    async with training.managed():
        await begin(training)
        await training.clock.advance(5)
        await training.put(initializer(**end))
        await training.clock.advance(5)
        assert steps(training) == {"dataInitializerStatus": {"state": state}}


async def test_failed_and_again(training: Training) -> None:
    """A step that has failed keeps how far it was, and its next pod starts anew."""
    async with training.managed():
        await begin(training)
        await training.clock.advance(5)
        await say(training, '{"progressPercentage": 40}')
        training.log(INITIALIZER_POD, DATA).end()
        await training.put(initializer(state=terminated(1, since=training.since), phase="Failed"))
        await training.clock.advance(5)
        assert steps(training) == {"dataInitializerStatus": {"state": "Failed", "progressPercentage": 40}}
        again = initializer(state=running(training.since), created="2027-01-01T00:00:00Z")
        again["metadata"] |= {"name": "digits-initializer-0-0-again", "uid": "uid-of-again"}
        training.log("digits-initializer-0-0-again", DATA)
        await training.put(again)
        await training.clock.advance(5)
        assert steps(training) == {"dataInitializerStatus": {"state": "Running"}}


async def test_suspended(training: Training) -> None:
    """A step whose pod is deleted before it has ended is gone."""
    async with training.managed():
        await begin(training)
        await training.clock.advance(5)
        training.client.remove(PODS, INITIALIZER_POD, KEY.namespace)
        await settle()
        await training.clock.advance(5)
        assert steps(training) == {}
        assert training.series("active_streams") == 0


async def test_next_manager(training: Training) -> None:
    """A manager that starts reads the log of a step that has ended no second time, and writes nothing."""
    training.client.add(initializer(state=terminated(), phase="Succeeded"))
    async with training.managed():
        await training.clock.advance(5)
    requests, writes = len(training.log_requests), training.writes
    assert (requests, writes) == (1, 1)
    async with training.managed():
        await training.clock.advance(600)
    assert (len(training.log_requests), training.writes) == (requests, writes)


async def test_next_manager_while_it_runs(training: Training) -> None:
    """A manager that starts goes on where the status of a step is, and removes that of a step that is gone."""
    async with training.managed():
        since = training.since
        await begin(training, DATA, MODEL, since=since)
        await training.clock.advance(5)
        await say(training, '{"progressPercentage": 40}')
        await training.clock.advance(5)
    await training.put(initializer(state=running(since)))
    async with training.managed():
        await training.clock.advance(5)
        assert steps(training) == {"dataInitializerStatus": {"state": "Running", "progressPercentage": 40}}
        assert training.log_requests[-1][1] is not None


async def test_next_manager_without_the_pod(training: Training) -> None:
    """A manager that starts removes the running step of an earlier one whose pod is gone, as after a suspension."""
    async with training.managed():
        await begin(training)
        await training.clock.advance(5)
        assert steps(training) == {"dataInitializerStatus": {"state": "Running"}}
    training.client.remove(PODS, INITIALIZER_POD, KEY.namespace)
    async with training.managed():
        await training.clock.advance(5)
        assert steps(training) == {}


async def test_no_steps(training: Training) -> None:
    """A training without steps has one follower, and its status has none of their fields."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 3}')
        assert training.log_requests == [(FIRST_POD, None)]
        assert steps(training) == {}


async def test_switched_off(training: Training) -> None:
    """The annotation that switches the reading of logs off does it for the steps, too."""
    obj = training.train_job
    training.client.add(obj | {"metadata": obj["metadata"] | {"annotations": {MONITORING: "false"}}})
    async with training.managed():
        await begin(training)
        assert training.log_requests == []
        assert steps(training) == {}


async def test_what_is_no_message(training: Training) -> None:
    """Wrong messages of a step are counted, and the next one counts."""
    async with training.managed():
        await begin(training)
        await say(training, "nothing")
        await say(training, '{"progressPercentage": 140}')
        await say(training, '{"progressPercentage": 14}')
        await training.clock.advance(5)
        assert steps(training)["dataInitializerStatus"]["progressPercentage"] == 14
        assert training.series("rejected_messages_total") == 1
        assert training.series("dropped_values_total") == 1


async def test_pushed_meanwhile(training: Training) -> None:
    """What a training posts to another replica stays beside the steps."""
    async with training.managed(with_pushes=True):
        await training.push(12)
        await begin(training)
        await training.clock.advance(5)
        assert training.percentage == 12
        assert steps(training) == {"dataInitializerStatus": {"state": "Running"}}


class OlderCluster(FakeClient):
    """A cluster whose CustomResourceDefinition has no fields for steps and checkpoints."""

    is_old = True

    async def send(self, request: ObjectRequest) -> Object | None:
        """Refuse them as the API server does."""
        status = request.body.get("status") if isinstance(request.body, dict) else None
        if self.is_old and request.resource == TRAIN_JOBS and status:
            unknown = {*status} - {"trainerStatus", "conditions"}
            unknown |= {"checkpoint"} & (status.get("trainerStatus") or {}).keys()
            if unknown:
                raise InternalError(500, f"failed to create typed patch object: .status.{min(unknown)}: {UNDECLARED}")
        return await super().send(request)


UNDECLARED = "field not declared in schema"


async def test_older_definition(training: Training, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the definition of TrainJobs is older than the manager, progress is shown, and once it is not, all else."""
    client = training.client = OlderCluster(fake_server=training.client.fake_server)
    async with training.managed():
        await begin(training)
        await training.start()
        for step in range(20):
            await training.report(f'{{"currentStep": {step}, "checkpoint": {{"step": {step}}}}}')
            await training.clock.advance(5)
            assert training.shown == {"currentStep": step}
        assert capsys.readouterr().out.count("apply the CRDs of this version") == 1
        client.is_old = False
        await training.clock.advance(600)
        await training.report('{"currentStep": 30}')
        await training.clock.advance(5)
        assert training.shown["checkpoint"]["step"] == 19
        assert steps(training) == {"dataInitializerStatus": {"state": "Running"}}
