from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.progress.conftest import FIRST_POD, KEY, Training
from tests.progress.pods import jobset, pod, running, terminated
from trainer.api.progress import CONTAINER, MONITORING, PRIMARY_POD, STALL_SECONDS
from trainer.api.progress_tags import TAG
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.resource import PODS
from trainer.progress.writer import ProgressWriter
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle, statuses

SECOND_POD = "digits-node-0-0-fghij"


async def test_progress(training: Training) -> None:
    """What a training reports in the log of its primary pod is what its TrainJob shows."""
    async with training.managed():
        log = await training.start()
        log.write(b"loading data\n")
        await training.report('{"currentStep": 5, "totalSteps": 20, "trainMetrics": {"loss": 0.2500}}')
        assert training.shown == {
            "progressPercentage": 25,
            "currentStep": 5,
            "totalSteps": 20,
            "trainMetrics": {"loss": "0.2500"},
        }
        assert training.series("lines_total") == 2
        assert training.series("messages_total") == 1
        assert training.series("active_streams") == 1


async def test_a_bar_that_goes_on(training: Training) -> None:
    """A progress bar without newlines, which is far longer than a message may be, is progress when it is written."""
    async with training.managed():
        log = await training.start()
        bar = f"{'#' * 100}| {{step}}/2000 [00:10<00:10, 1.00it/s]"
        for step in range(0, 2000, 500):
            log.write("".join(f"\r 0%|{bar.format(step=step + each)}" for each in range(500)).encode())
            await training.clock.advance(10)
            assert training.shown["currentStep"] == step + 498
        log.write(b"\r100%|" + bar.format(step=2000).encode() + b"\n")
        await training.clock.advance(10)
        assert training.shown["progressPercentage"] == 100
        time = training.train_job["status"]["trainerStatus"]["lastUpdatedTime"]
        assert time == "2026-01-01T00:00:30Z"  # and not the timestamp of the line, which is that of its beginning


async def test_waits_for_the_container(training: Training) -> None:
    """No log is asked for before the container has started."""
    async with training.managed():
        await training.put(pod())
        await training.put(pod(state={"waiting": {"reason": "ImagePullBackOff"}}))
        assert training.log_requests == []
        await training.start()
        assert training.log_requests == [(FIRST_POD, None)]


async def test_last_message(training: Training) -> None:
    """What was said last is shown at once when the container ends, whatever was written just before."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 10}')
        training.log().write(f'{TAG} {{"progressPercentage": 100}}\n'.encode())
        await training.end()
        await training.clock.advance(1)
        assert training.percentage == 100
        assert training.series("active_streams") == 0


async def test_last_message_of_a_pod_that_goes(training: Training) -> None:
    """What a stream still holds of a pod that is being deleted is read from it, since the log may be gone."""
    async with training.managed():
        await training.start()
        training.log().write(f'{TAG} {{"progressPercentage": 10}}\n'.encode())
        await settle()
        training.log().write(f'{TAG} {{"progressPercentage": 50}}\n'.encode())
        training.log().end()
        ended = pod(state=terminated(143), phase="Failed")
        ended["metadata"]["deletionTimestamp"] = "2026-01-02T11:00:00Z"
        await training.put(ended)
        training.client.remove(PODS, FIRST_POD, KEY.namespace)
        await training.clock.advance(5)
        assert training.percentage == 50


async def test_ended_before_it_was_seen(training: Training) -> None:
    """A log is read although its container has ended before anybody looked, and only once."""
    training.log().write(f'{TAG} {{"progressPercentage": 100}}\n'.encode())
    training.log().end()
    training.client.add(pod(state=terminated(), phase="Succeeded"))
    async with training.managed():
        await training.read()
        assert training.percentage == 100
        await training.finish()
        await training.put(pod(state=terminated(), phase="Succeeded", annotations={"touched": "yes"}))
        await training.clock.advance(600)
        assert len(training.log_requests) == 1


async def test_restarted_pod(training: Training) -> None:
    """The log of a new pod is followed; what the old one said last is shown until the new one says something."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 60, "trainMetrics": {"loss": 0.5}}')
        await training.clock.advance(5)
        await training.end(code=1)
        await training.clock.advance(60)
        await training.start(SECOND_POD, created="2026-01-03T10:00:00Z")
        assert training.percentage == 60
        await training.report('{"progressPercentage": 5}', SECOND_POD)
        assert training.shown == {"progressPercentage": 5}
        assert training.log_requests[-1] == (SECOND_POD, None)


async def test_restarted_container(training: Training) -> None:
    """A container that is started again in its pod begins anew, once it says something."""
    async with training.managed():
        log = await training.start(restart_policy="OnFailure")
        await training.report('{"progressPercentage": 60, "trainMetrics": {"loss": 0.5}}')
        log.restart()
        await training.clock.advance(10)
        assert training.percentage == 60
        await training.put(pod(state=running(training.since), restart_policy="OnFailure"))
        await training.clock.advance(10)
        await training.report('{"progressPercentage": 5}')
        assert training.shown == {"progressPercentage": 5}


def saved(step: int, **more: Any) -> str:
    """A message about a checkpoint, and perhaps about more."""
    return json.dumps({"checkpoint": {"step": step, "path": f"step-{step}"}} | more)


async def test_checkpoint(training: Training) -> None:
    """The last complete checkpoint is shown with its time, and stays when the training starts again."""
    async with training.managed():
        await training.start()
        await training.report(saved(100, currentStep=100))
        since = training.since
        await training.clock.advance(5)
        checkpoint = {"step": 100, "time": since, "path": "step-100"}
        assert training.shown == {"currentStep": 100, "checkpoint": checkpoint}
        await training.report('{"currentStep": 160}')
        await training.end(code=1)
        await training.clock.advance(60)
        await training.start(SECOND_POD, created="2026-01-03T10:00:00Z")
        await training.report('{"currentStep": 101}', SECOND_POD)
        assert training.shown == {"currentStep": 101, "checkpoint": checkpoint}


async def test_checkpoint_of_a_training_that_begins_from_scratch(training: Training) -> None:
    """The later checkpoint counts, not the one with more steps."""
    async with training.managed():
        await training.start()
        await training.report(saved(100, currentStep=100))
        await training.end(code=1)
        await training.clock.advance(60)
        await training.start(SECOND_POD, created="2026-01-03T10:00:00Z")
        await training.report(saved(10, currentStep=10), SECOND_POD)
        assert training.shown["checkpoint"]["step"] == 10


async def test_checkpoint_is_no_progress(training: Training) -> None:
    """A training that only saves checkpoints stands still, and reports no progress of its own."""
    async with training.managed(stall_timeout=60):
        await training.start()
        await training.report('{"currentStep": 1}')
        reported = training.train_job["status"]["trainerStatus"]["lastUpdatedTime"]
        for _ in range(3):
            await training.clock.advance(30)
            await training.report(saved(1))
        assert training.stall is not None
        assert training.stall[0] == "True"
        await training.clock.advance(5)
        assert training.train_job["status"]["trainerStatus"]["lastUpdatedTime"] == reported


@pytest.mark.parametrize("with_pushes", [False, True])
async def test_checkpoint_beside_ordinary_lines(training: Training, with_pushes: bool) -> None:
    """A training that only prints goes on to be read when its checkpoints are reported, even before its first step."""
    async with training.managed(with_pushes=with_pushes):
        log = await training.start()
        await training.report(saved(0))
        time = training.since
        assert training.shown == {"checkpoint": {"step": 0, "time": time, "path": "step-0"}}
        for step in (1, 2):
            log.write(f"step {step}/10 loss=0.5\n".encode())
            await training.read()
            await training.clock.advance(5)
            assert training.shown["currentStep"] == step
            await training.report(saved(step))
            await training.clock.advance(5)
            assert training.shown["checkpoint"]["step"] == step


async def test_suspended_and_resumed(training: Training) -> None:
    """A suspended training shows how far it was, and goes on with its next pod."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        training.log().end()
        training.client.remove(PODS, FIRST_POD, KEY.namespace)
        await training.clock.advance(600)
        assert training.percentage == 30
        assert training.series("active_streams") == 0
        await training.start(SECOND_POD)
        await training.report('{"progressPercentage": 31}', SECOND_POD)
        await training.clock.advance(5)
        assert training.percentage == 31


@pytest.mark.parametrize("end", ["Complete", "Failed"])
async def test_end(training: Training, end: str) -> None:
    """A training that has ended keeps what was reported last, without the time that remains."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30, "estimatedRemainingSeconds": 2700}')
        assert training.shown["estimatedRemainingTimeSummary"] == "45 minutes"
        assert training.shown["estimatedRemainingSeconds"] == 2700
        await training.end(code=1)
        await training.finish(end)
        await training.clock.advance(10)
        assert training.shown == {"progressPercentage": 30}
        writes = training.writes
        await training.clock.advance(600)
        assert training.writes == writes


async def test_suspended(training: Training) -> None:
    """What remains is gone while a TrainJob is suspended, also if a last message has it, and is back with news."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30, "estimatedRemainingSeconds": 2700}')
        await training.finish("Suspended")
        await training.clock.advance(5)
        assert training.shown == {"progressPercentage": 30}
        await training.report('{"progressPercentage": 31, "estimatedRemainingSeconds": 2600}')
        await training.clock.advance(5)
        assert training.shown == {"progressPercentage": 31}
        resumed = {"type": "Suspended", "status": "False", "reason": "Resumed"}
        job = training.train_job
        await training.put(job | {"status": job["status"] | {"conditions": [resumed]}})
        await training.report('{"progressPercentage": 2, "estimatedRemainingSeconds": 2800}')
        await training.clock.advance(5)
        assert training.shown["estimatedRemainingSeconds"] == 2800


async def test_deleted_and_made_again(training: Training) -> None:
    """A TrainJob of the same name inherits nothing."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        training.log().write(f'{TAG} {{"progressPercentage": 31}}\n'.encode())
        training.client.remove(TRAIN_JOBS, KEY.name, KEY.namespace)
        await training.put(training.train_job_object(uid="another"))
        await training.clock.advance(60)
        assert training.shown == {}
        assert training.series("active_streams") == 0


async def test_pod_with_forged_labels(training: Training) -> None:
    """The pod of another Job has no say, whatever its labels and annotations claim."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        forged = {"owner": "evil", "annotations": {PRIMARY_POD: "true"}, "created": "2027-01-01T00:00:00Z"}
        await training.start("forged", **forged)
        await training.report('{"progressPercentage": 99}', "forged")
        await training.clock.advance(60)
        assert training.percentage == 30
        assert {name for name, _ in training.log_requests} == {FIRST_POD}


@pytest.mark.parametrize(
    ("on_job", "on_jobset", "is_followed"),
    [
        pytest.param({}, {}, True, id="by default"),
        pytest.param({}, {MONITORING: "false"}, False, id="not by the JobSet"),
    ],
)
async def test_switch(
    training: Training, on_job: dict[str, str], on_jobset: dict[str, str], *, is_followed: bool
) -> None:
    """An annotation keeps a log from being read."""
    training.client.add(training.train_job_object(annotations=on_job))
    training.client.add(jobset(annotations=on_jobset))
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        assert (training.percentage == 30, bool(training.log_requests)) == (is_followed, is_followed)


async def test_switched_off_and_on(training: Training) -> None:
    """The annotation takes effect while a training runs; what it said meanwhile is read when it is allowed again."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        await training.put(
            training.train_job | {"metadata": training.train_job["metadata"] | {"annotations": {MONITORING: "false"}}}
        )
        await training.report('{"progressPercentage": 40}')
        await training.clock.advance(60)
        assert (training.percentage, training.series("active_streams")) == (30, 0)
        await training.put(training.train_job | {"metadata": training.train_job["metadata"] | {"annotations": {}}})
        await training.read()
        await training.clock.advance(5)
        assert training.percentage == 40


async def test_annotated_pod_and_container(training: Training) -> None:
    """Another pod and container may be named."""
    async with training.managed():
        await training.start()
        other = {"annotations": {PRIMARY_POD: "true", CONTAINER: "reporter"}, "containers": ["trainer", "reporter"]}
        training.log("digits-node-0-3-abcde", "trainer").write(f'{TAG} {{"progressPercentage": 1}}\n'.encode())
        training.log("digits-node-0-3-abcde", "reporter").write(f'{TAG} {{"progressPercentage": 2}}\n'.encode())
        await training.start("digits-node-0-3-abcde", index=3, **other)
        await training.read()
        assert training.percentage == 2


async def test_lines_that_are_no_messages(training: Training) -> None:
    """They are counted and reported once per pod, and cost no good one."""
    async with training.managed():
        await training.start()
        for step in range(5):
            await training.report("no JSON")
            await training.report(f'{{"currentStep": {step}}}')
        await training.clock.advance(10)
        assert training.shown == {"currentStep": 4}
        ((reason, message),) = training.warnings
        assert reason == "TrainerStatusRejected"
        assert "must be one JSON object" in message
        assert training.series("rejected_messages_total") == 5
        assert training.series("dropped_values_total") == 0


async def test_bad_values(training: Training) -> None:
    """They are dropped, counted, and reported once per field and pod; the rest of their messages counts."""
    async with training.managed():
        await training.start()
        for step in range(5):
            await training.report(
                f'{{"currentStep": {step}, "progressPercentage": 140, "trainMetrics": {{"loss": NaN, "lr": {step}}}}}'
            )
        await training.clock.advance(10)
        assert training.shown == {"currentStep": 4, "trainMetrics": {"lr": "4"}}
        (first, second) = training.warnings
        assert first[0] == second[0] == "TrainerStatusRejected"
        assert "progressPercentage: Invalid value: 140: must be at most 100" in first[1]
        assert "trainMetrics[loss]: Invalid value: NaN: must be a finite number" in second[1]
        assert training.series("dropped_values_total") == 10
        assert training.series("rejected_messages_total") == 0


async def test_a_restarted_manager_reads_on(training: Training) -> None:
    """Another manager goes on where the last one has written, and so sees what came meanwhile."""
    async with training.managed():
        await training.start()
        await training.clock.advance(1)
        await training.report('{"progressPercentage": 30, "trainMetrics": {"loss": 0.5}}')
        time = training.train_job["status"]["trainerStatus"]["lastUpdatedTime"]
    await training.clock.advance(100)
    training.log().write(f'{TAG} {{"progressPercentage": 40}}\n'.encode())
    training.client.requests.clear()
    async with training.managed():
        await training.read()
        assert training.log_requests == [(FIRST_POD, time)]
        assert training.shown["progressPercentage"] == 40
        assert training.shown["trainMetrics"] == {"loss": "0.5"}


async def test_a_restarted_manager_finds_a_new_pod(training: Training) -> None:
    """What is shown of an earlier pod says nothing about how far the log of this one is read."""
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30, "trainMetrics": {"loss": 0.5}}')
    await training.clock.advance(100)
    training.client.remove(PODS, FIRST_POD, KEY.namespace)
    training.client.requests.clear()
    async with training.managed():
        await training.start(SECOND_POD)
        await training.report('{"progressPercentage": 1}', SECOND_POD)
        assert training.log_requests == [(SECOND_POD, None)]
        assert training.shown == {"progressPercentage": 1}


async def test_jobset_of_another(training: Training) -> None:
    """Pods of a JobSet that is not the TrainJob's are nothing to it."""
    foreign = jobset()
    foreign["metadata"]["ownerReferences"] = []
    training.client.remove(JOBSETS, KEY.name, KEY.namespace)
    training.client.add(foreign)
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        assert training.log_requests == []


async def test_managed_by_another(training: Training) -> None:
    """A TrainJob that another controller looks after is left alone."""
    obj = training.train_job_object()
    training.client.add(obj | {"spec": obj["spec"] | {"managedBy": "kueue.x-k8s.io/multikueue"}})
    async with training.managed():
        await training.start()
        assert training.log_requests == []


TOLD = (
    "no progress since 2026-01-01T00:00:01Z, longer than the 10 minutes allowed (last: step 10 of 100 at 00:00:01 UTC)"
)
STALLED = ("True", "NoProgress", TOLD)
OVER = ("False", "StallEnded", TOLD)


async def stalled(training: Training) -> None:
    """It has reported a remaining time, and then nothing."""
    training.client.add(training.train_job_object(annotations={STALL_SECONDS: "600"}))
    await training.start()
    await training.clock.advance(1)
    await training.report('{"currentStep": 10, "totalSteps": 100, "estimatedRemainingSeconds": 28}')
    assert training.shown["estimatedRemainingTimeSummary"] == "28 seconds"
    await training.clock.advance(599)
    assert training.stall is None
    await training.clock.advance(6)
    assert training.stall == STALLED


async def test_a_stall_is_shown(training: Training) -> None:
    """A condition tells of it, and no time remains, until there is progress; repeating is none."""
    async with training.managed():
        await stalled(training)
        assert training.shown == {"progressPercentage": 10, "currentStep": 10, "totalSteps": 100}
        await training.report('{"currentStep": 10, "totalSteps": 100, "estimatedRemainingSeconds": 28}')
        await training.clock.advance(10)
        assert "estimatedRemainingTimeSummary" not in training.shown
        assert training.stall == STALLED
        await training.report('{"currentStep": 11, "estimatedRemainingSeconds": 20}')
        await training.clock.advance(6)
        assert training.shown["estimatedRemainingTimeSummary"] == "20 seconds"
        assert training.stall == OVER
        await training.report('{"currentStep": 12}')
        await training.clock.advance(6)
        assert training.stall == OVER


async def test_a_stall_before_the_first_message(training: Training) -> None:
    """It is shown as well."""
    training.client.add(training.train_job_object(annotations={STALL_SECONDS: "600"}))
    async with training.managed():
        await training.start()
        await training.clock.advance(601)
        assert training.stall is not None
        assert training.stall[0] == "True"
        assert training.stall[2].endswith("(nothing has been reported yet)")
        assert training.shown == {}


async def end(training: Training) -> None:
    await training.end()
    await training.finish()


async def drop_pod(training: Training) -> None:
    training.client.remove(PODS, FIRST_POD, KEY.namespace)
    await settle()


async def switch_off(training: Training) -> None:
    job = training.train_job
    await training.put(job | {"metadata": job["metadata"] | {"annotations": {MONITORING: "false"}}})


async def allow_more(training: Training) -> None:
    job = training.train_job
    await training.put(job | {"metadata": job["metadata"] | {"annotations": {STALL_SECONDS: "9999"}}})


@pytest.mark.parametrize(
    ("change", "restarts"),
    [
        pytest.param(end, False, id="ended"),
        pytest.param(drop_pod, False, id="without a pod, as when suspended"),
        pytest.param(switch_off, False, id="not followed"),
        pytest.param(allow_more, False, id="more time"),
        pytest.param(end, True, id="ended while nobody led"),
        pytest.param(switch_off, True, id="switched off while nobody led"),
    ],
)
async def test_the_end_of_a_stall_is_shown(
    training: Training, change: Callable[[Training], Awaitable[None]], restarts: bool
) -> None:
    """Whatever ends it, and whichever manager sees that."""
    async with training.managed():
        await stalled(training)
        if not restarts:
            await change(training)
            await training.clock.advance(10)
    if restarts:
        await change(training)
        async with training.managed():
            await training.clock.advance(10)
    assert training.stall == OVER


async def test_a_stall_outlives_the_manager(training: Training) -> None:
    """The next one goes on with it, warns no second time, and sees when it is over."""
    async with training.managed():
        await stalled(training)
    warnings = len(training.warnings)
    async with training.managed():
        await training.clock.advance(1)
        assert training.series("stalled_jobs") == 1
        await training.report('{"currentStep": 10, "totalSteps": 100}')
        await training.clock.advance(1200)
        assert training.stall == STALLED
        assert len(training.warnings) == warnings
        await training.report('{"currentStep": 11}')
        await training.clock.advance(6)
        assert training.stall == OVER


async def test_a_stall_of_an_earlier_run(training: Training) -> None:
    """A container that was started again while nobody led begins anew."""
    async with training.managed():
        await stalled(training)
    await training.clock.advance(5)
    await training.start()
    async with training.managed():
        await training.clock.advance(10)
        assert training.stall == OVER
        await training.clock.advance(600)
        assert training.stall is not None
        assert training.stall[0] == "True"


async def test_a_stall_of_another_of_the_same_name(training: Training) -> None:
    """A TrainJob that is made anew has never stalled."""
    async with training.managed():
        await stalled(training)
        training.client.remove(TRAIN_JOBS, KEY.name, KEY.namespace)
        training.client.add(training.train_job_object("another-uid"))
        await settle()
        await training.clock.advance(60)
        assert training.stall is None


async def test_stall_by_configuration(training: Training) -> None:
    """A timeout for all trainings is for those that report something."""
    async with training.managed(stall_timeout=60.0):
        await training.start()
        await training.clock.advance(600)
        assert training.warnings == []
        await training.report('{"progressPercentage": 1}')
        await training.clock.advance(61)
        assert [reason for reason, _ in training.warnings] == ["TrainingStalled"]


async def test_container_that_does_not_exist(training: Training) -> None:
    """A container that the pod does not have is reported; the one that trains is read."""
    training.client.add(training.train_job_object(annotations={CONTAINER: "reportr", STALL_SECONDS: "soon"}))
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 1}')
        assert training.percentage == 1
        container, stall = sorted(message for _, message in training.warnings)
        assert container == (
            f'metadata.annotations[{CONTAINER}]: Invalid value: "reportr": the pod has no container of this name; '
            "the log of trainer is read"
        )
        assert stall.startswith(f'metadata.annotations[{STALL_SECONDS}]: Invalid value: "soon": ')


async def test_a_new_run_heard_before_it_is_known(training: Training) -> None:
    """A log may tell of the next run of a container before its pod does; that is not mixed into the run before."""
    async with training.managed():
        log = await training.start(restart_policy="OnFailure")
        await training.report('{"progressPercentage": 60, "trainMetrics": {"loss": 0.5}}')
        await training.clock.advance(10)
        log.restart()
        await training.clock.advance(10)
        since = training.since
        await training.report('{"currentStep": 1, "totalSteps": 100}')
        await training.put(pod(state=running(since), restart_policy="OnFailure"))
        await training.clock.advance(5)
        assert training.shown == {"progressPercentage": 1, "currentStep": 1, "totalSteps": 100}
        await training.report('{"currentStep": 2}')
        await training.clock.advance(5)
        assert training.percentage == 2


async def test_not_found_by_mistake(training: Training) -> None:
    """A 404 of whatever stands between, while the pod is there, does not end the following."""
    training.client.faults.fail(statuses.not_found(PODS, FIRST_POD), verb="log", times=1)
    async with training.managed():
        await training.start()
        await training.report('{"progressPercentage": 30}')
        await training.clock.advance(10)
        assert training.percentage == 30


@pytest.mark.parametrize(
    ("ended", "shown", "is_read"),
    [
        pytest.param("2025-12-31T22:00:00Z", {}, False, id="long ago"),
        pytest.param("2025-12-31T23:55:00Z", {}, True, id="just now"),
        pytest.param(
            "2025-12-31T22:00:00Z", {"estimatedRemainingTimeSummary": "1 minute"}, True, id="not read to its end"
        ),
        pytest.param("2025-12-31T22:00:00Z", {"progressPercentage": 97}, False, id="read to its end"),
    ],
)
async def test_ended_before_the_manager_started(
    training: Training, ended: str, shown: dict[str, object], *, is_read: bool
) -> None:
    """Of the TrainJobs that have ended, only the logs are read that another manager may not have read to their end."""
    assert training.since == "2026-01-01T00:00:00Z"
    complete = {"type": "Complete", "status": "True", "reason": "Done", "lastTransitionTime": ended}
    status: dict[str, object] = {"conditions": [complete]}
    if shown:
        status["trainerStatus"] = shown | {"lastUpdatedTime": "2025-12-31T21:00:00Z"}
    training.client.add(training.train_job_object() | {"status": status})
    training.log().write(f'{TAG} {{"progressPercentage": 100}}\n'.encode())
    training.log().end()
    training.client.add(pod(state=terminated(since="2025-12-31T20:00:00Z"), phase="Succeeded"))
    async with training.managed():
        await training.clock.advance(10)
        assert bool(training.log_requests) == is_read
        assert training.percentage == (100 if is_read else shown.get("progressPercentage"))


async def test_a_defect_does_not_end_the_manager(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong with one log is logged, and the log is read again later."""
    failures, submit = iter([RuntimeError("a bug")]), ProgressWriter.submit

    def broken(*arguments: Any, **more: Any) -> None:
        for failure in failures:
            raise failure
        submit(*arguments, **more)

    async with training.managed():
        monkeypatch.setattr(ProgressWriter, "submit", broken)
        await training.start()
        await training.report('{"progressPercentage": 30}')
        assert training.percentage is None
        await training.clock.advance(61)
        assert training.percentage == 30


async def test_without_pods_no_reconcile(training: Training) -> None:
    """A TrainJob that waits for its first pod, or ends without one, costs the progress controllers nothing."""

    def reconciles() -> float:
        values = training.manager.metrics.registry.get_sample_value
        names = ("trainjob-progress", "trainjob-progress-status")
        labels = [{"controller": name, "result": "success"} for name in names]
        return sum(values("controller_runtime_reconcile_total", each) or 0 for each in labels)

    async with training.managed():
        await training.put(training.train_job | {"status": {"conditions": [{"type": "Created", "status": "True"}]}})
        await training.put(jobset(annotations={"queue": "a"}))
        await training.finish()
        assert reconciles() == 0
        await training.start()
        assert reconciles() > 0


async def test_what_is_newer_wins(training: Training) -> None:
    """The log and what was posted to the status server are shown in the order of their times."""
    async with training.managed(with_pushes=True):
        await training.start()
        await training.clock.advance(10)
        await training.report('{"progressPercentage": 10}')
        await training.push(20)
        assert training.percentage == 20
        await training.clock.advance(10)
        assert training.percentage == 20
        await training.report('{"progressPercentage": 30}')
        await training.clock.advance(10)
        assert training.percentage == 30


async def test_a_log_that_is_read_late(training: Training) -> None:
    """It does not take back what was posted since."""
    async with training.managed(with_pushes=True, status_interval=60.0):
        await training.start()
        await training.report('{"progressPercentage": 10}')
        await training.report('{"progressPercentage": 11}')
        await training.clock.advance(30)
        await training.push(40)
        await training.clock.advance(60)
        assert training.percentage == 40


async def test_a_bar_that_is_read_after_a_post(training: Training) -> None:
    """A bar says nothing more once progress was posted, although its state is read, and dated, after the last post."""
    async with training.managed(with_pushes=True):
        log = await training.start()
        training.client.faults.hold_watches(TRAIN_JOBS)
        await training.push(100)
        log.write(b"\r  0%|          | 0/10 [00:00<?, ?it/s]\r 10%|#         | 1/10 [00:01<00:09, 1.00it/s]")
        await training.clock.advance(10)
        training.client.faults.release_watches()
        await training.clock.advance(10)
        assert training.percentage == 100
        log.write(b"\r 20%|##        | 2/10 [00:02<00:08, 1.00it/s]\r")
        await training.clock.advance(10)
        assert training.percentage == 100


async def test_plain_lines_where_posts_are_taken(training: Training) -> None:
    """They go on, also with another manager and of another pod, and give way to the first post; messages do not."""
    log = training.log()

    async def train(*epochs: int) -> None:
        for epoch in epochs:
            log.write(f"Epoch {epoch}/10 loss=0.5\n".encode())
            await training.clock.advance(10)
            assert training.percentage == epoch * 10

    async with training.managed(with_pushes=True):
        await training.start()
        await train(1, 2)
    async with training.managed(with_pushes=True):
        await training.clock.advance(10)
        await train(3)
        await training.end(code=1)
        log = await training.start(SECOND_POD, created="2026-01-03T10:00:00Z")
        await train(1, 2, 3)
        await training.push(7)
        log.write(b"Epoch 4/10 loss=0.5\n")
        await training.clock.advance(10)
        assert training.percentage == 7
        await training.report('{"progressPercentage": 50}', SECOND_POD)
        await training.clock.advance(10)
        assert training.percentage == 50


async def test_a_write_that_meets_another(training: Training) -> None:
    """It is made again of what the TrainJob shows by then."""
    async with training.managed(with_pushes=True):
        await training.start()
        training.client.faults.hold_watches(TRAIN_JOBS)
        await training.push(50)
        await training.report('{"progressPercentage": 10}')
        await training.clock.advance(1)
        assert training.percentage == 50
        training.client.faults.release_watches()
        await training.clock.advance(60)
        assert training.percentage == 10


async def test_posts_are_progress(training: Training) -> None:
    """A training that only posts has not stalled before it stops to; a repetition is no progress."""
    training.client.add(training.train_job_object(annotations={STALL_SECONDS: "600"}))
    async with training.managed(with_pushes=True):
        await training.start()
        await training.clock.advance(500)
        await training.push(10)
        await training.clock.advance(500)
        states = [training.stall]
        await training.push(10)
        await training.clock.advance(101)
        states.append(training.stall)
        await training.push(11)
        await training.clock.advance(6)
        states.append(training.stall)
        assert [state and state[0] for state in states] == [None, "True", "False"]
        assert training.percentage == 11


async def test_checkpoint_beside_posts(training: Training) -> None:
    """The log says where checkpoints are, also of a training that posts its progress."""
    async with training.managed(with_pushes=True):
        await training.start()
        await training.push(30)
        await training.report(saved(5))
        await training.clock.advance(5)
        assert training.shown["checkpoint"]["step"] == 5
        assert training.percentage == 30
