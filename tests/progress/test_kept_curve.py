"""The curve of a metric on the TrainJob that asks for it: what it shows, when it is final, and what it costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests.progress.conftest import FIRST_POD, KEY, Training
from tests.progress.pods import jobset, pod, running, terminated
from trainer.api.metric_curve import CURVE, CURVE_OF, MetricCurve, Point, Unit, shows_final_curve
from trainer.api.progress import MONITORING
from trainer.api.progress_tags import TAG
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import annotations_of, uid_of
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import PODS
from trainer.progress.controller import ProgressController, ProgressOptions
from trainer.progress.writer import FIELD_MANAGER
from trainer.v1alpha1.client import SERVED, V1Alpha1Client
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, statuses

SECOND_POD = "digits-node-0-0-fghij"


class Asking(Training):
    """A training whose TrainJob asks for the curve of `loss`."""

    def __init__(self, metric: str = "loss", **annotations: str) -> None:
        super().__init__()
        self.client.add(self.train_job_object(annotations={CURVE_OF: metric} | annotations))

    def write(self, *losses: tuple[int | None, float], kind: str = "trainMetrics", pod: str = FIRST_POD) -> None:
        """The training prints messages."""
        for step, loss in losses:
            text = f'"{kind}": {{"loss": {loss}}}' + (f', "currentStep": {step}' if step is not None else "")
            self.log(pod).write(f"{TAG} {{{text}}}\n".encode())

    async def tell(self, *losses: tuple[int | None, float], **more: Any) -> None:
        """The training prints messages, one after the other, and they are read."""
        for each in losses:
            self.write(each, **more)
            await self.read()

    @property
    def curve(self) -> MetricCurve:
        """The curve that the TrainJob shows."""
        return MetricCurve.of(annotations_of(self.train_job), annotations_of(self.train_job)[CURVE_OF])

    @property
    def points(self) -> list[tuple[int, str]]:
        """Its points."""
        return [(point.step, point.value) for point in self.curve.points]

    @property
    def is_final(self) -> bool:
        """Whether it says that it is complete."""
        return shows_final_curve(annotations_of(self.train_job), uid_of(self.train_job))


@pytest.fixture
def training() -> Asking:
    """A TrainJob whose pod does not exist yet."""
    return Asking()


async def test_all_samples(training: Asking) -> None:
    """All values are kept, not only those that reach the status, and written at the pace of the status."""
    async with training.managed(status_interval=60.0):
        await training.start()
        await training.tell(*((step, step / 4) for step in range(1, 9)))
        assert training.points == [(1, "0.25")]
        await training.clock.advance(60)
        assert training.points == [(step, str(step / 4)) for step in range(1, 9)]
        assert len(training.client.requests_of("patch")) == 2
        assert {request.field_manager for request in training.client.requests_of("patch")} == {FIELD_MANAGER}
        await training.clock.advance(600)
        assert len(training.client.requests_of("patch")) == 2


async def test_ordinary_lines(training: Asking) -> None:
    """Lines of a training that only prints count, and give way to its first message."""
    async with training.managed():
        log = await training.start()
        for step in (1, 2, 3):
            log.write(f"step {step}/10 loss=0.{step}\n".encode())
            await training.read()
        await training.clock.advance(5)
        assert training.points == [(1, "0.1"), (2, "0.2"), (3, "0.3")]
        await training.tell((1, 0.5))
        await training.clock.advance(5)
        assert training.points == [(1, "0.5")]


async def test_evaluation_first(training: Asking) -> None:
    """The evaluation metric of the name is shown once there is one."""
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5), (2, 0.4))
        await training.tell((2, 0.7), kind="evalMetrics")
        await training.tell((3, 0.3))
        await training.clock.advance(5)
        assert training.points == [(2, "0.7")]


@pytest.mark.parametrize(
    ("messages", "points", "unit"),
    [
        pytest.param(
            ['{"trainMetrics": {"loss": 3}}', '{"trainMetrics": {"loss": 2}}'],
            [(1, "3"), (2, "2")],
            Unit.REPORTS,
            id="reports",
        ),
        pytest.param(
            ['{"currentEpoch": 4, "trainMetrics": {"loss": 3}}', '{"currentEpoch": 5, "trainMetrics": {"loss": 2}}'],
            [(4, "3"), (5, "2")],
            Unit.EPOCHS,
            id="epochs",
        ),
        pytest.param(
            ['{"currentStep": 40, "totalSteps": 90}', '{"currentEpoch": 1, "trainMetrics": {"loss": 2}}'],
            [(40, "2")],
            Unit.STEPS,
            id="the last step that was reported",
        ),
        pytest.param(['{"trainMetrics": {"other": 3}}', '{"currentStep": 4}'], [], Unit.STEPS, id="another metric"),
        pytest.param(['{"currentStep": 4, "trainMetrics": {"loss": NaN}}'], [], Unit.STEPS, id="not finite"),
    ],
)
async def test_steps(training: Asking, messages: list[str], points: list[tuple[int, str]], unit: Unit) -> None:
    """Steps are those of the training, else its epochs, else its reports are counted."""
    async with training.managed():
        await training.start()
        for text in messages:
            await training.report(text)
        await training.clock.advance(5)
        assert (training.points, training.curve.origin.unit) == (points, unit)


@pytest.mark.parametrize("steps", [(1, 2, 3, 4, 5, 6), (None,) * 6], ids=["with steps", "without steps"])
async def test_restarted_manager(training: Asking, steps: tuple[int | None, ...]) -> None:
    """Another manager goes on where the last one has stopped: nothing is lost, and nothing counts twice."""
    losses = [(step, 0.5 + index) for index, step in enumerate(steps)]
    async with training.managed(status_interval=1.0):
        await training.start()
        await training.tell(*losses[:2])
        await training.clock.advance(2)
        await training.tell(losses[2])  # read, and perhaps not written any more
    training.write(losses[3])
    await training.clock.advance(3)
    async with training.managed(status_interval=1.0):
        await training.tell(*losses[4:])
        await training.clock.advance(5)
        assert training.points == [(index + 1, str(loss)) for index, (_, loss) in enumerate(losses)]


async def test_manager_that_ends_between_two_requests(training: Asking) -> None:
    """The status is never ahead of the curve, so that a manager that starts finds the samples in between."""
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5))
        await training.clock.advance(10)
        training.client.faults.fail(statuses.unavailable(), times=None, verb="patch", resource=TRAIN_JOBS)
        await training.tell((2, 0.4))
        await training.clock.advance(1)
        assert training.shown["currentStep"] == 1
    training.client.faults.clear()
    async with training.managed():
        await training.read()
        await training.clock.advance(10)
        assert training.points == [(1, "0.5"), (2, "0.4")]
        assert training.shown["currentStep"] == 2


async def test_ordinary_lines_of_one_second(training: Asking) -> None:
    """A manager that starts takes also the lines of the second of the status, of which it knows some."""
    async with training.managed():
        log = await training.start()
        await training.clock.advance(1)
        log.write(b"step 1/10 loss=0.1\n", Instant(Instant.of(training.clock.now()).seconds, 100_000_000))
        await training.read()
        assert training.points == [(1, "0.1")]
    log.write(b"step 2/10 loss=0.2\n", Instant(Instant.of(training.clock.now()).seconds, 700_000_000))
    async with training.managed():
        await training.clock.advance(5)
        log.write(b"step 3/10 loss=0.3\n")
        await training.clock.advance(5)
        assert training.points == [(1, "0.1"), (2, "0.2"), (3, "0.3")]


async def test_lines_before_the_first_message(training: Asking) -> None:
    """What lines have said counts no more after the first message, also where another manager has read them."""
    async with training.managed():
        log = await training.start()
        await training.clock.advance(1)
        log.write(b"Namespace(batch=16, loss=0.1)\n")
        await training.read()
        assert training.points == [(16, "0.1")]
    await training.clock.advance(5)
    log.write(b"batch=17\n")
    async with training.managed():
        await training.report('{"currentEpoch": 1, "trainMetrics": {"loss": 0.5}}')
        await training.clock.advance(5)
        assert (training.points, training.shown) == (
            [(1, "0.5")],
            {"currentEpoch": 1, "trainMetrics": {"loss": "0.5"}},
        )
    async with training.managed():
        await training.tell((None, 0.4))
        await training.clock.advance(5)
        assert (training.points, training.shown["currentEpoch"]) == ([(1, "0.4")], 1)


async def test_an_answer_that_fails(training: Asking) -> None:
    """A write that fails is made again, with the progress that waited behind it."""
    training.client.faults.fail(statuses.unavailable(), verb="patch", resource=TRAIN_JOBS)
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5))
        await training.clock.advance(5)
        assert (training.points, training.shown["currentStep"]) == ([(1, "0.5")], 1)


async def test_restarted_container(training: Asking) -> None:
    """A training that goes on from a checkpoint overwrites what it has lost."""
    async with training.managed():
        log = await training.start(restart_policy="OnFailure")
        await training.tell((10, 0.5), (20, 0.4), (30, 9.0))
        log.restart()
        await training.clock.advance(10)
        await training.put(pod(state=running(training.since), restart_policy="OnFailure"))
        await training.clock.advance(10)
        await training.tell((20, 0.35))
        await training.clock.advance(10)
        assert training.points == [(10, "0.5"), (20, "0.35")]


async def test_suspended_and_resumed(training: Asking) -> None:
    """A suspended training keeps its curve, which is not final, and goes on with its next pod, whose clock may lag."""
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5), (2, 0.4))
        training.log().end()
        training.client.remove(PODS, FIRST_POD, KEY.namespace)
        await training.finish("Suspended")
        await training.clock.advance(600)
        assert (training.points, training.is_final) == ([(1, "0.5"), (2, "0.4")], False)
        log = await training.start(SECOND_POD)
        log.write(f'{TAG} {{"currentStep": 3, "trainMetrics": {{"loss": 0.3}}}}\n'.encode(), Instant(0))
        await training.read()
        assert training.points == [(1, "0.5"), (2, "0.4"), (3, "0.3")]
    async with training.managed():
        await training.tell((4, 0.2), pod=SECOND_POD)
        assert training.points[2:] == [(3, "0.3"), (4, "0.2")]


@pytest.mark.parametrize("end", ["Complete", "Failed"])
@pytest.mark.parametrize("losses", [[], [(1, 0.5), (2, 0.4), (3, 0.3)]], ids=["nothing reported", "reported"])
async def test_end(training: Asking, end: str, losses: list[tuple[int | None, float]]) -> None:
    """The curve is final at once when the training has ended and its log is read, and then nothing is written."""
    async with training.managed():
        await training.start()
        training.write(*losses)
        await training.end()
        states = [training.is_final]
        await training.finish(end)
        await training.read()
        states.append(training.is_final)
        assert states == [False, True]
        assert training.points == [(step, str(loss)) for step, loss in losses]
        training.client.requests.clear()
        await training.put(training.train_job | {"spec": {"runtimeRef": {"name": "torch"}, "suspend": False}})
        await training.clock.advance(600)
        assert not training.client.requests_of("patch", "apply")


async def test_end_before_the_log_is_read(training: Asking) -> None:
    """No watcher sees a final curve that lacks a value, also where the end of the TrainJob is seen before the pod's."""
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5))
        training.client.faults.hold_watches(PODS)
        training.write((2, 0.4))
        await training.finish()
        await training.clock.advance(60)
        assert not training.is_final
        await training.end()
        training.client.faults.release_watches()
        await training.read()
        assert (training.points, training.is_final) == ([(1, "0.5"), (2, "0.4")], True)
    curves = [request.body["metadata"]["annotations"][CURVE] for request in training.client.requests_of("patch")]
    assert [text for text in curves if "isFinal" in text] == curves[-1:]


ENDED = {"conditions": [{"type": "Complete", "status": "True", "reason": "Done"}]}


@pytest.mark.parametrize(
    ("ago", "state", "is_read"),
    [
        pytest.param("2026-01-01T00:00:00Z", terminated(), True, id="just now"),
        pytest.param("2025-12-31T00:00:00Z", terminated(), False, id="settled"),
        pytest.param("2026-01-01T00:00:00Z", None, False, id="no pod"),
    ],
)
async def test_ended_while_no_manager_ran(training: Asking, ago: str, state: Any, *, is_read: bool) -> None:
    """A manager that starts reads what is left, and makes the curve final in any case."""
    training.write((7, 0.5))
    training.log().end()
    if state is not None:
        training.client.add(pod(state=state, phase="Succeeded"))
    (condition,) = ENDED["conditions"]
    status = {"conditions": [condition | {"lastTransitionTime": ago}]}
    training.client.add(training.train_job | {"status": status})
    async with training.managed():
        await training.read()
        await training.clock.advance(11)  # after which no pod is expected any more
        assert (training.is_final, training.points) == (True, [(7, "0.5")] if is_read else [])


async def test_a_pod_that_is_seen_late(training: Asking) -> None:
    """A short training may have ended before its pod is seen: its curve is not called final before that."""
    training.client.add(
        training.train_job
        | {"status": {"conditions": [ENDED["conditions"][0] | {"lastTransitionTime": training.since}]}}
    )
    async with training.managed():
        await training.clock.advance(1)
        assert not training.is_final
        training.write((7, 0.5))
        training.log().end()
        await training.put(pod(state=terminated(), phase="Succeeded"))
        await training.read()
        assert (training.is_final, training.points) == (True, [(7, "0.5")])


async def test_read_by_another_manager(training: Asking) -> None:
    """Where no sample has come, the value that the status shows is the curve, as where it was posted to another."""
    progress = {"currentStep": 40, "evalMetrics": {"loss": "0.125"}, "lastUpdatedTime": "2025-12-31T00:00:00Z"}
    training.client.add(training.train_job | {"status": ENDED | {"trainerStatus": progress}})
    async with training.managed():
        assert (training.is_final, training.points) == (True, [(40, "0.125")])


async def test_copied(training: Asking) -> None:
    """A TrainJob that was made from another one with all its annotations has a curve of its own."""
    copied = MetricCurve("loss").with_point(9, "0.1")
    training.client.add(
        training.train_job_object(
            annotations={CURVE_OF: "loss", CURVE: replace(copied, is_final=True).to_text("another-uid")}
        )
    )
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5))
        await training.clock.advance(5)
        assert (training.is_final, training.points) == (False, [(1, "0.5")])
        await training.end()
        await training.finish()
        await training.read()
        assert (training.is_final, training.points) == (True, [(1, "0.5")])


async def test_monitoring_switched_off() -> None:
    """A log that must not be read leaves an empty curve, so that nobody waits for one."""
    training = Asking(**{MONITORING: "false"})
    async with training.managed():
        await training.start()
        training.write((1, 0.5))
        await training.end()
        await training.finish()
        await training.read()
        assert (training.is_final, training.points) == (True, [])


async def test_pushed(training: Asking) -> None:
    """Values that are posted to another replica are samples like others, once each."""

    async def push(loss: float) -> None:
        obj = training.train_job
        progress = {"trainMetrics": {"loss": str(loss)}, "lastUpdatedTime": training.since}
        await training.put(obj | {"status": {"trainerStatus": progress}})
        await training.clock.advance(5)

    async with training.managed(with_pushes=True):
        await training.start()
        await training.clock.advance(1)
        for loss in (0.5, 0.4, 0.3):
            await push(loss)
        assert training.points == [(1, "0.5"), (2, "0.4"), (3, "0.3")]
    async with training.managed(with_pushes=True):
        await push(0.2)
        await training.end()
        await training.finish()
        await training.read()
        assert (training.is_final, training.points[2:]) == (True, [(3, "0.3"), (4, "0.2")])


async def test_pushes_leave_the_log_its_turn(training: Asking) -> None:
    """The curve and the status of a log are written where pods may post, each once."""
    async with training.managed(with_pushes=True):
        await training.start()
        await training.tell((1, 0.5))
        await training.clock.advance(5)
        await training.tell((2, 0.4))
        await training.clock.advance(60)
        assert (training.points, training.shown["currentStep"]) == ([(1, "0.5"), (2, "0.4")], 2)
        assert len(training.client.requests_of("patch")) == training.writes == 2


async def test_a_curve_that_meets_a_post(training: Asking) -> None:
    """The status of a log does not take back what was posted, although the curve is written before it."""
    async with training.managed(with_pushes=True):
        await training.start()
        training.client.faults.hold_watches(TRAIN_JOBS)
        await training.push(50)
        await training.tell((1, 0.5))
        assert training.shown == {"progressPercentage": 50}
        training.client.faults.release_watches()
        await training.clock.advance(60)
        assert (training.points, training.shown["currentStep"]) == ([(1, "0.5")], 1)


async def test_another_metric(training: Asking) -> None:
    """The annotation takes effect while a training runs, from the next sample on; without it nothing is written."""
    async with training.managed():
        await training.start()
        await training.report('{"currentStep": 1, "trainMetrics": {"loss": 0.5, "accuracy": 0.1}}')
        obj = training.train_job
        annotations = annotations_of(obj) | {CURVE_OF: "accuracy"}
        await training.put(obj | {"metadata": obj["metadata"] | {"annotations": annotations}})
        await training.report('{"currentStep": 2, "trainMetrics": {"loss": 0.4, "accuracy": 0.2}}')
        await training.clock.advance(5)
        assert (training.curve.metric, training.points) == ("accuracy", [(2, "0.2")])


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(statuses.failure(403, "Forbidden", "no"), id="forbidden"),
        pytest.param(statuses.unprocessable(), id="refused"),
    ],
)
async def test_refused(training: Asking, error: Exception) -> None:
    """A curve that may not be written does not keep back the progress."""
    training.client.faults.fail(error, times=None, verb="patch", resource=TRAIN_JOBS)
    async with training.managed():
        await training.start()
        await training.tell((1, 0.5))
        assert training.shown["currentStep"] == 1
        assert training.points == []


@pytest.mark.parametrize("is_extended", [False, True])
async def test_v1alpha1(is_extended: bool) -> None:
    """A TrainJob of v1alpha1 shows the same curve, also where its CRD is that of Kubeflow Trainer (Go)."""
    training = Asking()
    served = SERVED[TRAIN_JOBS]
    server = FakeClient(
        training.train_job | {"apiVersion": served.api_version},
        jobset(),
        resources=[*SERVED.values(), JOBSETS],
        clock=training.clock,
    )
    training.client = server
    manager = Manager(V1Alpha1Client(server, is_extended=is_extended), clock=training.clock)
    ProgressController(manager, ProgressOptions())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await training.start()
        await training.tell((1, 0.5), (2, 0.4))
        await training.end()
        (obj,) = server.objects(served)
        server.add(obj | {"status": (obj.get("status") or {}) | ENDED})
        await training.read()
        tasks.cancel_scope.cancel()
    (obj,) = server.objects(served)
    curve = MetricCurve.of(annotations_of(obj), "loss")
    assert (curve.points, curve.is_final) == ((Point(1, "0.5"), Point(2, "0.4")), True)


@pytest.mark.parametrize("asks", [False, True])
async def test_requests(asks: bool) -> None:
    """A TrainJob that asks for no curve costs no request more; one that does costs one for each write, and the end."""
    training = Asking() if asks else Training()
    async with training.managed():
        await training.start()
        for step in range(1, 4):
            await training.report(f'{{"currentStep": {step}, "trainMetrics": {{"loss": 0.{step}}}}}')
            await training.clock.advance(5)
        await training.end()
        await training.finish()
        await training.clock.advance(60)
    requests = Counter(request.verb for request in training.client.requests)
    assert (requests["patch"], requests["apply"]) == (4 if asks else 0, 3)


async def test_own_writes_cause_no_reconcile(training: Asking) -> None:
    """A curve that is written is no news for the controllers of TrainJobs."""

    def reconciles() -> float:
        labels = {"controller": "trainjob-progress"}
        name = "controller_runtime_reconcile_time_seconds_count"
        return training.manager.metrics.registry.get_sample_value(name, labels) or 0

    async with training.managed():
        await training.start()
        await training.tell((1, 0.5))
        before = reconciles()
        for step in range(2, 5):
            await training.tell((step, 0.5))
            await training.clock.advance(5)
        assert len(training.points) == 4
        assert reconciles() == before > 0
