"""Progress from logs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import node_pod, train_job
from trainer.api.progress import MONITORING
from trainer.cli.run.logged_progress import LoggedProgress
from trainer.kube.objects import Object
from trainer.kube.podlogs.instant import Instant
from trainer.progress.containers import started_containers
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient


def message(second: int, fields: str) -> bytes:
    stamp = f"2026-01-01T00:00:{second:02}Z"
    return f"{stamp} [trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {fields}\n".encode()


def pod(index: int = 0, *, started: int = 0, uid: str = "uid") -> Object:
    made = node_pod("demo", index)
    made["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": f"2026-01-01T00:00:{started:02}Z"}}
    return {**made, "metadata": {**made["metadata"], "uid": f"{uid}-{index}"}}


async def test_messages_of_the_first_node_count(client: FakeClient) -> None:
    """What the primary container reports is merged; other containers and bad messages do not count."""
    progress = LoggedProgress(client, train_job())
    pods = [pod(0), pod(1)]
    first, second = (next(started_containers(each)) for each in pods)
    assert not progress.take(first, message(1, '{"currentStep": 9}'))  # not known to be primary
    await progress.see_pods(pods)

    assert progress.take(first, message(1, '{"currentStep": 1, "totalSteps": 4}') + message(2, '{"currentStep": 2}'))
    assert not progress.take(second, message(3, '{"currentStep": 3}'))
    assert not progress.take(first, message(3, "nonsense"))

    assert (progress.latest.steps, progress.latest.percentage) == ("2/4", 50)


async def test_states_of_a_bar(client: FakeClient) -> None:
    """The bar of the primary container is progress while its line goes on."""
    progress = LoggedProgress(client, train_job())
    pods = [pod(0), pod(1)]
    first, second = (next(started_containers(each)) for each in pods)
    await progress.see_pods(pods)
    now = Instant(1_767_225_700)
    stamp = b"2026-01-01T00:00:00Z "
    assert progress.take_state(first, stamp + b" 25%|##        | 25/100 [00:10<00:30, 2it/s]", now)
    assert not progress.take_state(second, stamp + b" 50%|#####     | 50/100 [00:10<00:30, 2it/s]", now)
    assert not progress.take_state(first, b"text", now)
    assert (progress.latest.steps, progress.latest.updated) == ("25/100", now.moment)


@pytest.mark.parametrize("uid", ["uid", "another"], ids=["same pod", "another pod"])
async def test_restart(client: FakeClient, uid: str) -> None:
    """After a restart the progress is what was reported last until the new run reports, which begins anew."""
    progress = LoggedProgress(client, train_job())
    await progress.see_pods([pod()])
    progress.take(next(started_containers(pod())), message(1, '{"currentStep": 3, "totalSteps": 4, "currentEpoch": 1}'))
    again = pod(started=10, uid=uid)
    await progress.see_pods([again])
    assert progress.latest.steps == "3/4"

    progress.take(next(started_containers(again)), message(11, '{"currentStep": 1}'))

    assert (progress.latest.steps, progress.latest.epochs, progress.latest.percentage) == ("1", "", None)


SWITCHED_OFF = {MONITORING: "false"}


@pytest.mark.parametrize(
    ("of_job", "of_spec", "of_jobset"),
    [
        pytest.param(SWITCHED_OFF, {}, {}, id="TrainJob"),
        pytest.param({}, SWITCHED_OFF, None, id="JobSet that cannot be read"),
        pytest.param({}, {}, SWITCHED_OFF, id="JobSet, such as by its runtime"),
    ],
)
async def test_switched_off(
    client: FakeClient, of_job: dict[str, str], of_spec: dict[str, str], of_jobset: dict[str, str] | None
) -> None:
    """Where the annotation keeps the manager from reading the log, it is not read for the bar either."""
    job = train_job()
    job["metadata"]["annotations"] = of_job
    job["spec"]["annotations"] = of_spec
    if of_jobset is not None:
        client.add(jobset(of_jobset))
    progress = LoggedProgress(client, job)
    await progress.see_pods([pod()])

    assert not progress.take(next(started_containers(pod())), message(1, '{"currentStep": 3}'))


async def test_switched_off_later(client: FakeClient) -> None:
    """The annotation may come, and go, while the training goes on."""
    job = train_job()
    progress = LoggedProgress(client, job)
    container = next(started_containers(pod()))
    progress.see_job({**job, "metadata": {**job["metadata"], "annotations": SWITCHED_OFF}})
    await progress.see_pods([pod()])
    assert not progress.take(container, message(1, '{"currentStep": 3}'))

    progress.see_job(job)
    await progress.see_pods([pod()])
    assert progress.take(container, message(2, '{"currentStep": 4}'))


def step_pod(state: dict[str, Any]) -> Object:
    """A pod that fetches the model."""
    made = pod()
    made["metadata"]["uid"] = "step"
    made["spec"]["containers"] = [{"name": "model-initializer"}]
    made["status"]["containerStatuses"] = [{"name": "model-initializer", "restartCount": 0, "state": state}]
    return made


def test_steps(client: FakeClient) -> None:
    """An initializer is shown with what it reports while it runs, and then with how it has ended."""
    steps = LoggedProgress(client, train_job())
    waiting, working = step_pod({"waiting": {}}), step_pod({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    container = next(started_containers(working))
    assert not steps.take(container, message(1, '{"currentStep": 1, "totalSteps": 4}'))  # of an unknown pod
    steps.see_pod(waiting)
    assert list(steps.steps) == []

    steps.see_pod(working)
    steps.see_pod(pod())
    assert steps.take(container, message(1, '{"currentStep": 1, "totalSteps": 4}') + b"nonsense\n")
    (step,) = steps.steps
    assert (step.name, step.is_running, step.progress.percentage) == ("model-initializer", True, 25)

    ended = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z", "exitCode": 0}
    steps.see_pod(step_pod({"terminated": ended}))
    assert [each.state for each in steps.steps] == ["Complete"]
    steps.see_pod(step_pod({"terminated": {**ended, "exitCode": 2}}))
    assert [each.state for each in steps.steps] == ["Failed"]


def jobset(annotations: dict[str, str]) -> Object:
    """The JobSet of the job demo."""
    return {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {"name": "demo", "namespace": "default", "annotations": annotations},
        "spec": {"replicatedJobs": [{"name": "node", "template": {}}]},
    }
