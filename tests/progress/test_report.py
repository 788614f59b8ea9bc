"""What training scripts report with the file that is copied beside them."""

from __future__ import annotations

import ast
import fcntl
import json
import logging
import math
import os
import shutil
import subprocess
import sys
from collections import UserDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.api.progress_tags import TAG
from trainer.progress import protocol, report
from trainer.progress.protocol import Message, tagged_lines

SOURCE = Path(report.__file__)
STAMP = b"2026-01-02T03:04:05.000000006Z "


@pytest.fixture(autouse=True)
def nobody_has_been_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test begins without warnings, and alone."""
    monkeypatch.setattr(report, "_warned", set())
    for name in (*report._RANKS, "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def messages_of(log: bytes) -> list[Message]:
    """What the controller manager reads in a log."""
    stamped = b"".join(STAMP + line for line in log.splitlines(keepends=True))
    return [protocol.parse(line.payload) for line in tagged_lines(stamped)]


def encoded(fields: Mapping[str, object], metrics: Mapping[str, Mapping[str, object]]) -> Message:
    """The message of a line that is written."""
    line = report.encode(fields, metrics)
    assert line is not None
    assert line.count(b"\n") == 1
    (message,) = messages_of(line)
    return message


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Script:
    """A reporter with the lines that it has written."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.is_open = True
        self.lines: list[dict[str, object]] = []
        self.reporter = report.Reporter(self._write, clock=self.clock)

    def _write(self, line: bytes) -> bool:
        if self.is_open:
            self.lines.append(json.loads(line.removeprefix(report.TAG.encode())))
        return self.is_open

    def take(self, *, force: bool = False, loss: object = None, **fields: object) -> list[dict[str, object]]:
        """Report, and return what is written for it."""
        before = len(self.lines)
        self.reporter.take(fields, {} if loss is None else {"trainMetrics": {"loss": loss}}, force=force)
        return self.lines[before:]


@pytest.fixture
def script() -> Script:
    return Script()


class Scalar:
    """A number as NumPy, PyTorch and JAX have them."""

    def __init__(self, number: object) -> None:
        self.number = number
        self.conversions = 0

    def item(self) -> object:
        self.conversions += 1
        if isinstance(self.number, Exception):
            raise self.number
        return self.number


class Detached(Scalar):
    """A number in the memory of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(None)
        self.tensor = tensor

    def item(self) -> object:
        return self.tensor.number

    def numel(self) -> int:
        return 1

    def clone(self) -> Scalar:
        return Scalar(self.tensor.number)


class Tensor(Scalar):
    """A number with the graph that computed it."""

    def detach(self) -> Detached:
        return Detached(self)


def test_tag() -> None:
    """The tag is that of the protocol."""
    assert report.TAG == TAG


def test_copied_file_needs_nothing() -> None:
    """The file runs with Python 3.8 and imports the standard library only."""
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 8))
    imported = [node.names[0].name for node in ast.walk(tree) if isinstance(node, ast.Import)]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0.1 + 0.2, "0.30000000000000004", id="float"),
    ],
)
def test_metric(value: object, text: str) -> None:
    """Numbers of all kinds arrive digit by digit."""
    assert encoded({}, {"trainMetrics": {"loss": value}}).train_metrics == {"loss": text}


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        pytest.param("loss", math.nan, "trainMetrics[loss]=nan: must be a finite number", id="nan"),
        pytest.param("loss", "0.5", "trainMetrics[loss]='0.5': must be a finite number", id="text"),
        pytest.param("loss", 10**5000, "trainMetrics[loss]=int: must be a finite number", id="digits-beyond-limits"),
        pytest.param("loss", Scalar(RuntimeError("CUDA")), "must be a finite number", id="broken-device"),
        pytest.param("\ud800", 1, r"trainMetrics['\ud800']: names of metrics", id="surrogate"),
    ],
)
def test_metric_that_would_be_refused(name: str, value: object, warning: str, caplog: pytest.LogCaptureFixture) -> None:
    """What the controller manager refuses is left out with one warning; the rest of the message stays."""
    for _ in range(3):
        message = encoded({"currentStep": 1}, {"trainMetrics": {name: value, "lr": 0.5}})

    assert message == Message(current_step=1, train_metrics={"lr": "0.5"})
    assert [warning in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        pytest.param("progressPercentage", 99.99, 99, id="fraction-of-a-percent"),
        pytest.param("currentStep", "7", None, id="text"),
        pytest.param("estimatedRemainingSeconds", 59.9, 59, id="fraction-of-a-second"),
    ],
)
def test_position(field: str, value: object, expected: int | None, caplog: pytest.LogCaptureFixture) -> None:
    """Positions are whole numbers in range; anything else is left out with one warning."""
    for _ in range(3):
        line = report.encode({field: value, "currentEpoch": 1}, {})

    assert line is not None
    assert json.loads(line.removeprefix(report.TAG.encode())).get(field) == expected
    assert len(messages_of(line)) == 1
    assert len(caplog.records) == (expected is None)


def test_too_many_metrics(caplog: pytest.LogCaptureFixture) -> None:
    """The first 256 metrics are reported, with a warning about the others."""
    message = encoded({}, {"evalMetrics": {f"m{number}": number for number in range(300)}})

    assert message.eval_metrics is not None
    assert list(message.eval_metrics) == [f"m{number}" for number in range(256)]
    assert [record.getMessage() for record in caplog.records] == [
        "report() left out what evalMetrics has beyond 256 metrics"
    ]


def test_line_that_would_be_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """Metrics are left out when with all of them the line is longer than readers take."""
    line = report.encode({"currentStep": 1}, {"trainMetrics": {"ü" * 60 + str(n): 0.1 for n in range(200)}})

    assert line is not None
    assert len(line) < 64 * 1024 - 100
    (message,) = messages_of(line)
    assert message.current_step == 1
    assert len(message.train_metrics or {}) == 128
    assert len(caplog.records) == 1


def test_nothing_left() -> None:
    """There is no line without content."""
    assert report.encode({}, {"trainMetrics": {"loss": math.nan}}) is None


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.decimals(), st.lists(st.floats())
)


@given(
    st.dictionaries(st.sampled_from(list(report._LIMITS)), anything),
    st.dictionaries(
        st.sampled_from(["trainMetrics", "evalMetrics"]), st.dictionaries(st.text() | st.just(3), anything)
    ),
)
def test_any_line_is_accepted(fields: dict[str, object], metrics: dict[str, dict[str, object]]) -> None:
    """Whatever is reported, the line is one that the controller manager takes."""
    logging.disable()
    try:
        line = report.encode(fields, metrics)
    finally:
        logging.disable(logging.NOTSET)
    assert line is None or len(messages_of(line)) == 1


class TestRate:
    """At most a line a second, and nothing that matters is lost."""

    def test_held_back(self, script: Script) -> None:
        """What comes within a second is joined to the next line, newest first."""
        script.take(currentStep=1, totalSteps=100)
        script.clock.seconds += 0.4
        assert script.take(currentStep=2, loss=0.5) == []
        script.clock.seconds += 0.4
        assert script.take(currentStep=3) == []
        script.clock.seconds += 0.4
        assert script.take(currentStep=4) == [{"currentStep": 4, "trainMetrics": {"loss": 0.5}}]

    def test_metrics_of_several_calls(self, script: Script) -> None:
        """Metrics are joined name by name."""
        script.take(currentStep=1)
        script.reporter.take({}, {"trainMetrics": {"loss": 0.5, "lr": 0.1}})
        script.reporter.take({}, {"trainMetrics": {"loss": 0.4}, "evalMetrics": {"accuracy": 0.9}})
        script.reporter.flush()
        assert script.lines[1:] == [{"trainMetrics": {"loss": 0.4, "lr": 0.1}, "evalMetrics": {"accuracy": 0.9}}]

    def test_later_step_outdates_remaining_time(self, script: Script) -> None:
        """A remaining time does not outlive the step that it was reported with, and a percentage holds."""
        script.take(currentStep=1)
        script.take(progressPercentage=50, estimatedRemainingSeconds=60)
        script.take(currentStep=52)
        script.reporter.flush()
        assert script.lines[1:] == [{"progressPercentage": 50, "currentStep": 52}]

    @pytest.mark.parametrize(
        "last",
        [
            pytest.param({"progressPercentage": 100}, id="percentage"),
            pytest.param({"currentStep": 100}, id="step"),
            pytest.param({"currentEpoch": 3, "totalEpochs": 3, "currentStep": 100}, id="epoch-and-step"),
        ],
    )
    def test_last_step(self, last: dict[str, int], script: Script) -> None:
        """The end is written at once, also when the number of steps was known before."""
        script.take(currentStep=99, totalSteps=100)
        script.reporter.take(last, {})
        assert script.lines[1:] == [last]

    def test_last_epoch(self, script: Script) -> None:
        """Epochs tell the end only where there are no steps."""
        script.take(currentStep=5, totalSteps=10, currentEpoch=3, totalEpochs=3)
        assert script.take(currentStep=6, currentEpoch=3) == []
        other = Script()
        other.take(currentEpoch=2, totalEpochs=3)
        assert len(other.take(currentEpoch=3)) == 1

    def test_words_after_the_end(self, script: Script) -> None:
        """What is said after the last step does not wait, but a whole epoch that counts as the end is not written."""
        script.take(currentEpoch=3, totalEpochs=3)
        assert script.take(loss=0.1) == [{"trainMetrics": {"loss": 0.1}}]
        for number in range(1000):
            script.take(loss=number)
        assert len(script.lines) <= 12
        script.reporter.flush()
        assert script.lines[-1] == {"trainMetrics": {"loss": 999}}

    def test_another_training(self, script: Script) -> None:
        """A second training in the same process is no longer at the end."""
        script.take(currentStep=10, totalSteps=10)
        assert script.take(currentStep=1) == []

    def test_force(self, script: Script) -> None:
        """A report that is forced is written at once, with what was held back."""
        script.take(currentStep=1)
        script.take(loss=0.5)
        assert script.take(force=True) == [{"trainMetrics": {"loss": 0.5}}]
        assert script.take(currentStep=2, force=True) == [{"currentStep": 2}]

    def test_stdout_that_is_full(self, script: Script) -> None:
        """What could not be written is tried again, a second later."""
        script.is_open = False
        script.take(currentStep=1, loss=0.5)
        script.is_open = True
        assert script.take(currentStep=2) == []
        script.clock.seconds += 1
        assert script.take(currentStep=3) == [{"currentStep": 3, "trainMetrics": {"loss": 0.5}}]

    def test_tensors_are_not_waited_for(self, script: Script) -> None:
        """A tensor becomes a number when it is written, and only then."""
        script.take(currentStep=1)
        losses = [Scalar(0.1), Scalar(0.2)]
        for loss in losses:
            script.take(currentStep=Scalar(2), loss=loss)
        assert [loss.conversions for loss in losses] == [0, 0]
        script.reporter.flush()
        assert [loss.conversions for loss in losses] == [0, 1]

    def test_graphs_are_not_kept(self, script: Script) -> None:
        """A tensor that is held back is held without the graph that computed it."""
        script.take(currentStep=1)
        loss = Tensor(0.5)
        script.take(loss=loss)
        script.reporter.flush()
        assert loss.conversions == 0
        assert script.lines[-1] == {"trainMetrics": {"loss": 0.5}}

    def test_tensor_that_is_added_to(self, script: Script) -> None:
        """A tensor that the script goes on changing is reported as it was."""
        script.take(currentStep=1)
        total = Tensor(0.5)
        script.take(loss=total)
        total.number = 0.0
        script.reporter.flush()
        assert script.lines[-1] == {"trainMetrics": {"loss": 0.5}}


def chief(kind: str, index: int, *kinds: str) -> str:
    return json.dumps({"cluster": {name: ["a", "b"] for name in kinds}, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({}, None, id="alone"),
        pytest.param({"JOB_COMPLETION_INDEX": "1"}, 1, id="pod"),
        pytest.param({"RANK": "2", "PET_NODE_RANK": "0", "JOB_COMPLETION_INDEX": "0"}, 2, id="torchrun"),
        pytest.param({"RANK": "2", "LOCAL_RANK": "0", "JOB_COMPLETION_INDEX": "0"}, 0, id="rank-2-of-first-pod"),
        pytest.param(
            {"RANK": "0", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "JOB_COMPLETION_INDEX": "0"},
            1,
            id="second-of-pod",
        ),
        pytest.param(
            {"RANK": "0", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "JOB_COMPLETION_INDEX": "3"},
            7,
            id="as-pods-count",
        ),
        pytest.param(
            {"RANK": "0", "LOCAL_RANK": "0", "OMPI_COMM_WORLD_RANK": "0", "JOB_COMPLETION_INDEX": "2"},
            0,
            id="mpi-brings-the-output-to-the-launcher",
        ),
        pytest.param({"PET_NODE_RANK": "1", "JOB_COMPLETION_INDEX": "0"}, 1, id="torch-without-torchrun"),
        pytest.param({"JAX_PROCESS_ID": "1", "JOB_COMPLETION_INDEX": "0"}, 1, id="second-jax-process-of-a-node"),
        pytest.param({"OMPI_COMM_WORLD_RANK": "0", "JOB_COMPLETION_INDEX": "1"}, 0, id="mpi-rank-0-on-another-node"),
        pytest.param({"OMPI_COMM_WORLD_RANK": "3", "JOB_COMPLETION_INDEX": "0"}, 3, id="launcher-that-trains"),
        pytest.param({"OMPI_COMM_WORLD_RANK": "1", "SLURM_PROCID": "0"}, 1, id="mpirun-within-slurm"),
        pytest.param({"RANK": "3", "SLURM_PROCID": "0"}, 3, id="torchrun-within-srun"),
        pytest.param({"PMI_RANK": "1"}, 1, id="mpich"),
        pytest.param({"FLUX_TASK_RANK": "1", "JOB_COMPLETION_INDEX": "0"}, 1, id="flux"),
        pytest.param({"PMIX_RANK": "1"}, 1, id="pmix"),
        pytest.param({"DMLC_TASK_ID": "1", "JOB_COMPLETION_INDEX": "1"}, 1, id="xgboost"),
        pytest.param({"RANK": "", "JOB_COMPLETION_INDEX": "1"}, 1, id="empty"),
        pytest.param({"RANK": "first", "JOB_COMPLETION_INDEX": "1"}, 1, id="no-number"),
        pytest.param({"TF_CONFIG": chief("worker", 0, "worker")}, 0, id="first-worker"),
        pytest.param({"TF_CONFIG": chief("chief", 0, "worker", "chief")}, 0, id="chief"),
        pytest.param({"TF_CONFIG": chief("worker", 0, "worker", "chief")}, 1, id="worker-of-a-chief"),
        pytest.param({"TF_CONFIG": chief("ps", 0, "worker", "ps")}, 1, id="parameter-server"),
        pytest.param({"TF_CONFIG": "[]", "JOB_COMPLETION_INDEX": "1"}, 1, id="other-json"),
        pytest.param({"TF_CONFIG": "{", "JOB_COMPLETION_INDEX": "1"}, 1, id="no-json"),
    ],
)
def test_rank(environment: dict[str, str], expected: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What started the process itself says its rank; the index of the pod is for where nothing else does."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert report.rank() == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [pytest.param(2, 1, id="a-group-knows-best"), pytest.param(1, 0, id="alone-it-knows-nothing")],
)
def test_rank_of_process_group(size: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a script starts by itself have no rank in the environment, but in PyTorch's group."""
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    group = SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: size, get_rank=lambda: 1)
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    assert report.rank() == expected


@pytest.mark.parametrize(
    ("index", "expected"), [pytest.param("0", 0, id="first-pod"), pytest.param("1", 1, id="second-pod")]
)
def test_rank_of_elastic_process_group(index: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever rank a rendezvous has given it, the first process of the pod whose log is followed writes."""
    monkeypatch.setenv("JOB_COMPLETION_INDEX", index)
    monkeypatch.setenv("LOCAL_RANK", "0")
    group = SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 2, get_rank=lambda: 1 - expected)
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    assert report.rank() == expected


def test_other_ranks_are_silent(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only rank 0 writes, whatever the others report, and they keep nothing."""
    monkeypatch.setenv("RANK", "1")
    script.take(currentStep=1, totalSteps=2)
    script.take(currentStep=2, loss=0.1)
    script.take(currentStep=2, loss=0.1, force=True)
    script.reporter.flush()
    assert script.lines == []


def test_nothing_raises(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is passed, the training goes on."""

    class Hostile(UserDict[str, float]):
        def __iter__(self) -> Iterator[str]:
            raise RuntimeError

    report.report(3, "x", step=4, current_step=object(), force=True)  # type: ignore[arg-type]
    report.report(train_metrics=[1, 2], eval_metrics=7)  # type: ignore[arg-type]
    report.report(train_metrics=Hostile(loss=1), force=True)
    report.report(current_step=10**400, total_steps=-(10**400), progress_percentage=math.nan, force=True)
    assert messages_of(capfd.readouterr().out.encode()) == []
    assert caplog.messages[0] == "report() does not know step; metrics go into train_metrics={'loss': 0.3}"
    assert "report() failed: RuntimeError()" in caplog.messages


@pytest.mark.parametrize(
    ("step", "path", "expected", "warning"),
    [
        pytest.param(7, "step-7", {"step": 7, "path": "step-7"}, "", id="relative"),
        pytest.param(Scalar(7.0), Path("/checkpoints/step-7"), {"step": 7, "path": "step-7"}, "", id="absolute"),
        pytest.param(7, None, {"step": 7}, "", id="no-path"),
        pytest.param(
            7,
            "/elsewhere/step-7",
            {"step": 7},
            "checkpoint_path='/elsewhere/step-7': must be below TRAINER_CHECKPOINT_DIR",
            id="elsewhere",
        ),
        pytest.param(7, "a\nb", {"step": 7}, r"checkpoint_path='a\nb': must be below", id="no-name"),
        pytest.param(7, "p" * 257, {"step": 7}, "checkpoint_path=", id="long"),
        pytest.param(-1, "step-7", None, "checkpoint_step=-1: must be a number from 0 to 2147483647", id="no-step"),
        pytest.param(None, "step-7", None, "checkpoint_step=NoneType: must be a number", id="path-alone"),
    ],
)
def test_checkpoint(
    step: object,
    path: object,
    expected: object,
    warning: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A checkpoint is written at once, with its path from the directory of all; what is wrong of it is left out."""
    monkeypatch.setenv(report.DIRECTORY_VARIABLE, "/checkpoints")
    monkeypatch.setattr(sys, "__stdout__", sys.stdout)
    monkeypatch.setattr(report, "_reporter", report.Reporter(report.Stdout().write, clock=Clock()))
    report.report(current_step=6, force=True)
    report.report(current_step=7)
    report.report(checkpoint_step=step, checkpoint_path=path)  # type: ignore[arg-type]
    lines = [json.loads(line.partition(" ")[2]) for line in capfd.readouterr().out.splitlines()]
    assert lines == [{"currentStep": 6}, *([{"currentStep": 7, "checkpoint": expected}] if expected else [])]
    assert [warning in message for message in caplog.messages] == ([True] if warning else [])
    report._reporter.flush()


def test_warnings_are_few(caplog: pytest.LogCaptureFixture) -> None:
    """Ever new names do not make ever new warnings."""
    for number in range(1000):
        report.encode({}, {"trainMetrics": {f"loss {number}": math.nan}})
    assert len(caplog.records) <= 20


def test_line_that_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that a full pipe cut is ended before the next one, so that this one counts."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    monkeypatch.setattr(report, "_RETRY_SECONDS", 0.0)
    with os.fdopen(reader, "rb", buffering=0) as log, os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "__stdout__", stream)
        stdout = report.Stdout()
        assert not stdout.write(b"x" * 5000 + b"\n")
        log.read(8192)
        assert stdout.write(b"next\n")
        assert stdout.write(b"and next\n")
        assert log.read(8192) == b"\nnext\nand next\n"


def run(tmp_path: Path, text: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a training script beside a copy of the file."""
    shutil.copy(SOURCE, tmp_path)
    (tmp_path / "train.py").write_text(text)
    clean = {name: value for name, value in os.environ.items() if name not in {*report._RANKS, "LOCAL_RANK"}}
    command = [sys.executable, "-I", "-c", f"import sys; sys.path[0] = {str(tmp_path)!r}; import train"]
    return subprocess.run(command, env=clean | environment, capture_output=True, timeout=60, check=False)


STEPS = """
for step in range(1, 101):
    report(current_step=step)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(STEPS, [1, 100], id="left-over-at-exit"),
        pytest.param("report(current_step=1, total_steps=2); report(current_step=2); os._exit(0)", [1, 2], id="_exit"),
        pytest.param("sys.stdout = io.StringIO()\nreport(current_step=1)", [1], id="stdout-is-replaced"),
        pytest.param("sys.stdout.close()\nreport(current_step=1)", [], id="stdout-is-closed"),
        pytest.param("sys.stdout.reconfigure(encoding='utf-16')\nreport(current_step=1)", [1], id="encoding"),
        pytest.param("print('\\r 10%|#  |', end='')\nreport(current_step=1)", [1], id="after-a-bar"),
        pytest.param("print('x' * 8190)\nprint('y' * 9)\nreport(current_step=1)", [1], id="after-a-full-buffer"),
        pytest.param("os.set_blocking(1, False)\nreport(current_step=1)", [1], id="stdout-does-not-block"),
        pytest.param(
            "class Loud(io.StringIO):\n flush = None\nsys.stdout = Loud()\nreport(current_step=1)", [1], id="odd"
        ),
    ],
)
def test_stdout(text: str, expected: list[int], tmp_path: Path) -> None:
    """Lines reach the real stdout, whatever stands in its place, and the last one always does."""
    result = run(tmp_path, f"import io, os, sys\nfrom report import report\n{text}\n")

    assert b"Traceback" not in result.stderr
    assert [message.current_step for message in messages_of(result.stdout)] == expected


def test_interval_of_environment(tmp_path: Path) -> None:
    """The environment sets the interval; what is no number of seconds is warned of."""
    text = f"from report import report\n{STEPS}"
    assert len(messages_of(run(tmp_path, text, TRAINER_STATUS_INTERVAL_SECONDS="0").stdout)) == 100
    result = run(tmp_path, text, TRAINER_STATUS_INTERVAL_SECONDS="1s")
    assert len(messages_of(result.stdout)) == 2
    assert result.stderr == b"report() takes 1 for TRAINER_STATUS_INTERVAL_SECONDS='1s': must be seconds\n"


def test_warnings_as_errors(tmp_path: Path) -> None:
    """A script that makes warnings errors is not stopped by ours."""
    text = "import warnings; warnings.simplefilter('error')\nfrom report import report\nreport(current_step='x')\n"
    result = run(tmp_path, text + "print('goes on')")
    assert result.stdout == b"goes on\n"
    assert result.stderr == b"report() left out currentStep='x': must be a number from 0 to 2147483647\n"


def test_broken_pipe(tmp_path: Path) -> None:
    """A script whose output nobody reads any more goes on."""
    shutil.copy(SOURCE, tmp_path)
    (tmp_path / "train.py").write_text(f"from report import report\n{STEPS}raise SystemExit(7)\n")
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, tmp_path / "train.py"], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (7, b"")


FORK = """
import os, threading
import report as module
from report import report
report(current_step=1)
report(current_step=2)
with module._reporter._lock:
    pid = os.fork()
if pid == 0:
    report(current_step=3)
    raise SystemExit(0)
os.waitpid(pid, 0)
"""

POOL = """
import multiprocessing
from report import report
def work():
    for step in range(1, 101):
        report(current_step=step)
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
"""

THREADS = """
import threading
from report import report
def work(number):
    for step in range(1, 51):
        report(current_step=step, train_metrics={f"loss{number}": step / 7}, force=True)
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(FORK, [1, 3, 2], id="fork-does-not-repeat-its-parent"),
        pytest.param(POOL, [1, 100], id="multiprocessing-ends-without-atexit"),
    ],
)
def test_processes(text: str, expected: list[int], tmp_path: Path) -> None:
    """Every process writes its own reports once, and its last one."""
    result = run(tmp_path, text)
    assert result.stderr == b""
    assert [message.current_step for message in messages_of(result.stdout)] == expected


def test_threads(tmp_path: Path) -> None:
    """Lines of several threads are whole, and none of them is lost."""
    result = run(tmp_path, THREADS)
    assert result.stderr == b""
    names = [name for message in messages_of(result.stdout) for name in message.train_metrics or {}]
    assert {names.count(f"loss{number}") for number in range(4)} == {50}
