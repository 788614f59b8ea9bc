"""Following a sweep with a fake cluster and clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import pytest
from rich.console import Console

from packages.sweeps.tests.commands.samples import BEGAN, condition, ended, sweep, trial
from tests.cli.conftest import screen, text_of
from trainer.api.optimization import OPTIMIZATION_JOBS, PRUNED
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object
from trainer_kube_testing import FakeClient, ManualClock
from trainer_sweeps.commands.follow import SweepDisplay, SweepFollower
from trainer_sweeps.commands.table import trial_lines
from trainer_sweeps.commands.view import SweepView


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start=parse_timestamp(BEGAN))


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(resources=[TRAIN_JOBS, OPTIMIZATION_JOBS], clock=clock)


@asynccontextmanager
async def following(client: FakeClient, clock: ManualClock, console: Console) -> AsyncIterator[list[SweepView | None]]:
    """Follows a sweep in the background while the body lets things happen; afterwards holds how it ended."""
    ends: list[SweepView | None] = []
    stored = client.add(sweep())

    async def follow() -> None:
        with SweepDisplay(console, clock, script="src/train.py") as display:
            view = await SweepFollower(client, OPTIMIZATION_JOBS, stored, display, clock).run()
        if view is not None:
            display.end(view)
        ends.append(view)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await clock.advance(0)
            yield ends
            while not ends:
                await clock.advance(1)


def pruned() -> Object:
    """A trial that was stopped after a minute."""
    made = trial(1, condition("Suspended"), curve=("1",))
    made["metadata"]["annotations"][PRUNED] = "worse than the median"
    return made


def since_long(number: int) -> Object:
    """A trial that has run for a year."""
    made = trial(number, state="Running")
    made["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    return made


def running(*trials: Object) -> Object:
    """The status of a sweep with trials that have ended."""
    return {"state": "Running", "conditions": [condition("Created")], "trials": list(trials)}


async def steps(client: FakeClient, clock: ManualClock) -> None:
    """A sweep of four trials: one is the best, one fails, one is pruned, one is better."""
    client.add(sweep(status=running()))
    for number in (1, 2):
        client.add(trial(number, curve=("0.9",), state="Running", trainerStatus={"progressPercentage": 50}))
    await clock.advance(60)
    client.add(trial(1, condition("Complete"), curve=("0.9", "0.5")))
    client.add(trial(2, condition("Failed", message="node-0: ValueError: no"), curve=("0.9",)))
    client.add(sweep(status=running(ended(1), ended(2, "Failed", None, "node-0: ValueError: no"))))
    await clock.advance(1)
    client.add(trial(3, curve=("0.8",)))
    client.add(trial(4))
    await clock.advance(1)
    stopped = trial(3, curve=("0.8",))
    stopped["metadata"]["annotations"][PRUNED] = "worse than the median"
    client.add(stopped)
    client.add(trial(4, condition("Complete"), curve=("0.25",)))
    await clock.advance(1)
    last = running(
        ended(1),
        ended(2, "Failed", None, "node-0: ValueError: no"),
        ended(3, "Pruned", "0.8", "worse than the median"),
        ended(4, value="0.25"),
    )
    client.add(sweep(status=last | {"state": "Complete", "conditions": [condition("Complete")]}))


AGAIN = (
    "  trainer run src/train.py -n default --runtime torch-distributed "
    "--env KUBEFLOW_TRAINER_OPT_LR=0.004 --env KUBEFLOW_TRAINER_OPT_BS=16"
)
END = [
    "digits  Complete  4 of 4 trials: 2 succeeded, 1 failed, 1 pruned  after 1 min 03 s",
    "best: trial 4  loss 0.25",
    "  lr  0.004",
    "  bs  16",
    "train it again, with more steps:",
    AGAIN,
]


async def test_lines(client: FakeClient, clock: ManualClock) -> None:
    """Without a terminal each trial is a line when it begins and when it ends, and so is each better value."""
    console = screen()

    async with following(client, clock, console) as ends:
        await steps(client, clock)

    assert text_of(console).splitlines() == [
        "digits  Running  0 of 4 trials",
        "trial 1  lr 0.001  bs 16",
        "trial 2  lr 0.002  bs 16",
        "trial 1  Succeeded  loss 0.5  after 1m",
        "best so far: trial 1, loss 0.5 (1 of 4 trials, ETA 1 min 00 s)",
        "trial 2  Failed  after 1m  node-0: ValueError: no",
        "trial 3  lr 0.003  bs 16",
        "trial 4  lr 0.004  bs 16",
        "trial 3  Pruned  loss 0.8  worse than the median",
        "trial 4  Succeeded  loss 0.25  after 1m",
        "best so far: trial 4, loss 0.25 (4 of 4 trials)",
        *END,
        "more: trainer metrics digits-trial-4 -n default, trainer logs digits-trial-4 -n default",
    ]
    assert ends[0] is not None
    assert ends[0].state == "Complete"


async def test_another_metric(client: FakeClient, clock: ManualClock) -> None:
    """While trials run it is said once that none of their metrics is the objective, not before a tenth is done."""
    console = screen()
    metrics = {"evalMetrics": {"val_loss": "0.5"}, "trainMetrics": {"acc": "0.1"}}

    async with following(client, clock, console):
        client.add(sweep(status=running()))
        client.add(trial(1, state="Running", trainerStatus=metrics | {"progressPercentage": 9}))
        await clock.advance(1)
        assert "note:" not in text_of(console)
        for number in (1, 2):
            client.add(trial(number, state="Running", trainerStatus=metrics | {"progressPercentage": 10}))
        await clock.advance(1)
        client.add(sweep(status={"state": "Failed", "conditions": [condition("Failed")]}))

    said = "note: trial 1 reports val_loss, acc, and no loss so far: a trial without it fails"
    assert [line for line in text_of(console).splitlines() if "note:" in line] == [said]


@pytest.mark.parametrize(
    ("ends", "spec", "hints"),
    [
        pytest.param(["Failed"] * 2, {}, 0, id="two"),
        pytest.param(["Failed"] * 3, {}, 1, id="three"),
        pytest.param(["Failed"] * 3 + ["Pruned"], {}, 0, id="one is no failure"),
        pytest.param(["Failed"] * 3, {"maxFailedTrials": 5}, 0, id="ends by itself"),
    ],
)
async def test_failures(clock: ManualClock, ends: list[str], spec: Object, hints: int) -> None:
    """After three trials of which all have failed a hint says how the sweep is ended, once."""
    console = screen()
    status = running(*(ended(number, state, None) for number, state in enumerate(ends, start=1)))
    view = SweepView.of(sweep(numTrials=20, status=status, **spec), [], clock.now())
    display = SweepDisplay(console, clock)

    display.show(view)
    display.show(view)

    said = "note: all 3 trials so far have failed: trainer delete sweep digits -n default ends it; --max-failed N does"
    assert text_of(console).count(said) == hints


@pytest.mark.parametrize("terminal", [True, False])
def test_obstacles(clock: ManualClock, terminal: bool) -> None:
    """Why trials wait is printed once for all that wait for the same."""
    console = screen(terminal=terminal, width=90)
    jobs = [
        trial(n, condition("Pending", "Unschedulable", f"digits-trial-{n}: no GPU"), state="Pending") for n in (1, 2)
    ]
    view = SweepView.of(sweep(status=running()), jobs, clock.now())
    display = SweepDisplay(console, clock)

    display.show(view)
    display.show(view)

    said = [line for line in text_of(console).splitlines() if "no GPU" in line]
    assert said == ["trial 1  Pending  digits-trial-1: no GPU"]


async def test_live_table(client: FakeClient, clock: ManualClock) -> None:
    """On a terminal trials are a table, those that run first; what has failed and the end stay above it."""
    console = screen(terminal=True, width=90)

    async with following(client, clock, console):
        await steps(client, clock)

    shown = text_of(console)
    assert "digits  Running  2 of 4 trials" in shown
    assert "50 %  ETA 1 min 00 s  1 min 01 s" in shown
    assert "best  loss 0.5  trial 1  lr 0.001  bs 16" in shown
    assert "TRIAL  STATE    lr     bs  loss  PROGRESS         TIME" in shown
    assert "trial 2  Failed  after 1m  node-0: ValueError: no" in shown
    assert "trial 1  Succeeded" not in shown
    assert shown.rstrip().endswith("trainer logs digits-trial-4 -n default")
    table = shown[shown.rindex("TRIAL  STATE") :].splitlines()
    assert [line.split()[:2] for line in table[1:5]] == [
        ["4", "Succeeded"],
        ["1", "Succeeded"],
        ["3", "Pruned"],
        ["2", "Failed"],
    ]
    assert table[5:11] == END


async def test_blocked(client: FakeClient, clock: ManualClock) -> None:
    """What blocks a sweep is said once."""
    console = screen()

    async with following(client, clock, console):
        blocked = condition("Created", "AlgorithmServiceCreationFailed", "gp needs torch", "False")
        for _ in range(2):
            client.add(sweep(status={"state": "Blocked", "conditions": [blocked]}))
            await clock.advance(1)
        client.add(sweep(status={"conditions": [condition("Failed", message="too many")]}))

    lines = text_of(console).splitlines()
    assert lines == [
        "digits  Blocked  0 of 4 trials  gp needs torch",
        "digits  Failed  0 of 4 trials  after 2 s  too many",
    ]


async def test_no_controller(client: FakeClient, clock: ManualClock) -> None:
    """Where nobody handles it, there is a hint after a while; a sweep that is deleted ends it."""
    console = screen()

    async with following(client, clock, console) as ends:
        await clock.advance(11)
        await client.delete(OPTIMIZATION_JOBS, "digits", "default")

    assert ends == [None]
    assert text_of(console).startswith("note: no controller of sweeps has handled it yet: check that a manager runs")


@pytest.mark.parametrize(
    ("trials", "parallel", "left"),
    [
        pytest.param([], 2, None, id="none has ended"),
        pytest.param([trial(1, condition("Complete"), curve=("1",))], 1, 180.0, id="three more, one at once"),
        pytest.param([trial(1, condition("Complete"), curve=("1",))], 2, 90.0, id="two at once"),
        pytest.param([trial(1, condition("Complete"), curve=("1",)), trial(2)], 2, 75.0, id="one runs since 30 s"),
        pytest.param([trial(1, condition("Complete"), curve=("1",))], 100, 60.0, id="more at once than are left"),
        pytest.param([pruned(), trial(2)], 2, 75.0, id="one was pruned after 60 s"),
        pytest.param(
            [
                trial(1, condition("Complete"), curve=("1",)),
                *(trial(n, state="Running", trainerStatus={"estimatedRemainingSeconds": 500}) for n in (2, 3, 4)),
            ],
            3,
            500.0,
            id="all others run, and know when they end",
        ),
        pytest.param(
            [
                trial(1, condition("Complete"), curve=("1",)),
                *map(since_long, (2, 3, 4)),
            ],
            3,
            None,
            id="all others run longer than expected",
        ),
    ],
)
def test_remaining(trials: list[Object], parallel: int, left: float | None) -> None:
    """The estimate is what running trials say of themselves, else the mean duration, by as many as run at once."""
    now = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)

    view = SweepView.of(sweep(parallelTrials=parallel), trials, now)

    assert view.remaining_seconds == left


def test_recorded_trials_count_as_recorded() -> None:
    """A trial that the status has recorded is as it says, also where its TrainJob is gone, or says otherwise."""
    status = running(ended(1, "Pruned", "0.7", "hopeless"), ended(2, value="0.3"))

    view = SweepView.of(sweep(status=status), [trial(1, condition("Complete"), curve=("0.1",))], parse_timestamp(BEGAN))

    assert [(each.trial.number, each.word, each.trial.value) for each in view.trials] == [
        (1, "Pruned", "0.7"),
        (2, "Succeeded", "0.3"),
    ]
    assert view.best is not None
    assert view.best.name == "digits-trial-2"


def test_train_jobs_of_others_do_not_count() -> None:
    """A TrainJob with the labels of a trial that the sweep does not control is none."""
    view = SweepView.of(
        sweep(), [trial(1) | {"metadata": trial(1)["metadata"] | {"ownerReferences": []}}], parse_timestamp(BEGAN)
    )

    assert not view.trials


def test_a_parameter_of_the_name_of_a_column() -> None:
    """A parameter that is called as a column, or as the metric, is beside it."""
    names = ["loss", "STATE"]
    searched = [{"name": name, "searchSpace": {"categorical": {"choices": ["16"]}}} for name in names]
    record = {"number": 1, "state": "Succeeded", "value": "0.5", "parameterValues": ["mse", "ny"]}
    view = SweepView.of(sweep(parameters=searched, status=running(record)), [], parse_timestamp(BEGAN))

    header, line = (text.plain.split() for text in trial_lines(view, view.trials, screen()))

    assert (header, line) == (["TRIAL", "STATE", "loss", "STATE", "loss"], ["1", "Succeeded", "mse", "ny", "0.5"])


@pytest.mark.parametrize("width", range(50, 100, 3))
def test_numbers_are_whole(width: int) -> None:
    """Where a terminal is too narrow names of parameters are cut, and columns left out, but no number is cut."""
    names = [f"a_long_name_of_parameter_{number}" for number in range(5)]
    searched = [{"name": name, "searchSpace": {"uniform": {"min": "-1", "max": "1"}}} for name in names]
    record = {"number": 1, "state": "Succeeded", "value": "0.5", "parameterValues": ["-1.2345e-05"] * 5}
    view = SweepView.of(sweep(parameters=searched, status=running(record)), [], parse_timestamp(BEGAN))

    header, line = (text.plain.split() for text in trial_lines(view, view.trials, screen(terminal=True, width=width)))

    assert "…" in header[2]
    assert line == ["1", "Succeeded", *["-1.234e-05"] * (len(line) - 3), "0.5"]
    assert len(line) > 3
