"""Tables of TrainJobs within the width of a terminal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.conftest import train_job
from trainer.cli.jobs.table import JobTable
from trainer.kube.clock import timestamp
from trainer.kube.objects import Object
from trainer_kube_testing import ManualClock

NOW = ManualClock().now()
LONG = "imagenet-resnet50-with-a-name-of-as-many-characters-as-fit-x7k2p"


def job(name: str, *, namespace: str = "default", state: str = "Running", seconds: int = 12, **progress: Any) -> Object:
    """A TrainJob that has reported so long ago."""
    reported = {"lastUpdatedTime": timestamp(NOW - timedelta(seconds=seconds))} if progress else {}
    made = train_job(name, state=state, trainerStatus=progress | reported)
    made["metadata"] |= {"namespace": namespace, "creationTimestamp": timestamp(NOW - timedelta(seconds=780))}
    made["spec"] |= {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 16}}
    return made


USUAL: dict[str, Any] = {
    "progressPercentage": 45,
    "estimatedRemainingSeconds": 795649,
    "estimatedRemainingTimeSummary": "9 days 5 hours",
    "currentStep": 4500,
    "totalSteps": 10000,
    "currentEpoch": 2,
    "totalEpochs": 5,
    "trainMetrics": {"loss": "0.23471", "lr": "0.0001"},
    "evalMetrics": {"eval_accuracy": "0.891234567"},
}
SILENT = {**USUAL, "estimatedRemainingTimeSummary": "no report since 10:30 UTC", "estimatedRemainingSeconds": None}
FETCHING = {"state": "Running", "progressPercentage": 12}
CASES = {
    "usual": [job("train-x7k2p", **USUAL), job("waits", state="Pending"), job("failed", state="Failed", **USUAL)],
    "silent": [job("train-x7k2p", **USUAL), job("hangs", seconds=720, **SILENT)],
    "long names": [job(LONG, namespace="a-team-with-a-rather-long-name-in-production", **USUAL), job("b")],
    "long numbers": [job("b", **USUAL | {"currentStep": 123456789012, "totalSteps": 987654321098})],
    "long metric": [job("b", **USUAL | {"trainMetrics": {"validation_mean_average_precision_loss": "0.23471"}})],
    "wide characters": [job("b", **USUAL | {"trainMetrics": {"平均損失の値_訓練データ全体_loss": "0.23471"}})],
    "a step beside it": [train_job("b", state="Running", dataInitializerStatus=FETCHING), job("c", **USUAL)],
}


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("with_namespace", [False, True])
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_off_screen(case: str, width: int, with_namespace: bool, is_wide: bool) -> None:
    """No line is longer than the terminal is wide, and each value is whole: progress, time, and the first metric."""
    table = JobTable(width, with_namespace=with_namespace, is_wide=is_wide)

    header, *lines = table.lines(CASES[case], NOW)

    assert max(line.cell_len for line in (header, *lines)) <= width
    for line in lines:
        if "45%" in line.plain:
            assert " 0.2347" in line.plain
            at = cell_len(header.plain[: header.plain.index("METRICS")])
            assert cell_len(line.plain[: line.plain.rindex(" 0.2347")].rstrip()) > at
    if case == "silent":
        assert "12m  " in lines[1].plain
    whole = JobTable(with_namespace=with_namespace, is_wide=is_wide).lines(CASES[case], NOW)
    assert LONG in whole[1].plain or case != "long names"
    assert ("no report for 12m" in whole[-1].plain) == (case == "silent")


ONE_METRIC: dict[str, Any] = {"evalMetrics": {}, "trainMetrics": {"loss": "0.23471"}}
MIXED = [
    job("train-x7k2p", **USUAL | ONE_METRIC),
    job("hangs", seconds=720, **SILENT | ONE_METRIC),
    CASES["a step beside it"][0],
]


@pytest.mark.parametrize(
    ("width", "picture"),
    [
        pytest.param(
            140,
            """\
NAMESPACE  NAME         STATE    PROGRESS         ETA                STEP                 METRICS      AGE
default    train-x7k2p  Running  ████▌░░░░░  45%  9d5h               4500/10000           loss 0.2347  13m
default    hangs        Running  ████▌░░░░░  45%  no report for 12m  4500/10000           loss 0.2347  13m
default    b            Running  █▏░░░░░░░░  12%                     dataset-initializer""",
            id="all of it",
        ),
        pytest.param(
            100,
            """\
NAMESPACE  NAME         STATE    PROGRESS  ETA                STEP                 METRICS      AGE
default    train-x7k2p  Running       45%  9d5h               4500/10000           loss 0.2347  13m
default    hangs        Running       45%  no report for 12m  4500/10000           loss 0.2347  13m
default    b            Running       12%                     dataset-initializer""",
            id="no bar",
        ),
        pytest.param(
            80,
            """\
NAMESPACE  NAME         STATE    PROGRESS  ETA         METRICS      AGE
default    train-x7k2p  Running       45%  9d5h        loss 0.2347  13m
default    hangs        Running       45%  silent 12m  loss 0.2347  13m
default    b            Running       12%""",
            id="no steps, and a word for a sentence",
        ),
        pytest.param(
            60,
            """\
NAMESPACE  NAME       STATE    PROGRESS  ETA         METRICS
default    trai…7k2p  Running       45%  9d5h        0.2347
default    hangs      Running       45%  silent 12m  0.2347
default    b          Running       12%""",
            id="hardly any room",
        ),
    ],
)
def test_what_goes(width: int, picture: str) -> None:
    """The less room there is, the less is said beside the values."""
    lines = JobTable(width, with_namespace=True).lines(MIXED, NOW)
    assert "\n".join(line.plain for line in lines) == picture


def failed(name: str, message: str, state: str = "Failed", **progress: Any) -> Object:
    """A TrainJob with a condition that says why it does not run."""
    made = job(name, state=state, **progress)
    condition = "Created" if state == "Blocked" else state
    status = "False" if state == "Blocked" else "True"
    made["status"]["conditions"] = [{"type": condition, "status": status, "reason": "Why", "message": message}]
    return made


@pytest.mark.parametrize(
    ("width", "picture"),
    [
        pytest.param(
            None,
            """\
NAME         STATE    PROGRESS         ETA   STEP        METRICS                   AGE
train-x7k2p  Running  ████▌░░░░░  45%  9d5h  4500/10000  loss 0.2347               13m
late         Failed   ████▌░░░░░  45%  node-1: NCCL timeout                        13m
wrong        Failed   node-0: ModuleNotFoundError: No module named 'nosuchmodule'  13m
waits        Pending  Why: no node has nvidia.com/gpu                              13m
typo         Blocked  Why: there is no runtime                                     13m""",
            id="whole",
        ),
        pytest.param(
            80,
            """\
NAME         STATE    PROGRESS         ETA   STEP        METRICS             AGE
train-x7k2p  Running  ████▌░░░░░  45%  9d5h  4500/10000  loss 0.2347         13m
late         Failed   ████▌░░░░░  45%  node-1: NCCL timeout                  13m
wrong        Failed   node-0: ModuleNotFoundError: No module named 'nosuch…  13m
waits        Pending  Why: no node has nvidia.com/gpu                        13m
typo         Blocked  Why: there is no runtime                               13m""",
            id="cut",
        ),
    ],
)
def test_reasons(width: int | None, picture: str) -> None:
    """Where a TrainJob that does not train would have step and metrics, its line says why."""
    shown = [
        job("train-x7k2p", **USUAL | ONE_METRIC),
        failed("late", "node-1: NCCL timeout", **USUAL | ONE_METRIC),
        failed("wrong", "node-0: ModuleNotFoundError: No module named 'nosuchmodule'\nTraceback:"),
        failed("waits", "no node has nvidia.com/gpu", "Pending"),
        failed("typo", "there is no runtime", "Blocked"),
    ]
    assert "\n".join(line.plain for line in JobTable(width).lines(shown, NOW)) == picture


def test_names_are_cut_in_the_middle() -> None:
    """A long name keeps its end, which tells it from those of other runs."""
    (_, line, _) = JobTable(80).lines(CASES["long names"], NOW)
    assert line.plain.split()[0].startswith("imagenet-")
    assert line.plain.split()[0].endswith("…as-fit-x7k2p")


def test_widths_stay() -> None:
    """Columns of later lines are below those of earlier ones, as long as they fit."""
    table = JobTable(80)
    table.lines([job("a-name-of-some-length", **USUAL)], NOW)
    assert table.lines([job("short")], NOW)[0].plain.index("STATE") == len("a-name-of-some-length") + 2
    assert table.lines([job(LONG, **USUAL)], NOW)[0].cell_len <= 80
