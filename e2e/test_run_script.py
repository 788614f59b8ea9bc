"""`trainer run SCRIPT` on `trainer up`, with both versions of the API."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.home import Home, running_home
from e2e.prerequisites import MPI, needs_module
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]
ONE_VERSION = pytest.mark.parametrize("home", ["v2alpha1"], indirect=True)
"""That of which a runtime needs no framework, and does not start failed pods again with growing pauses."""
PLAIN = """\
import os, sys
import model
print("node", os.environ["JOB_COMPLETION_INDEX"], sys.argv[1:], os.environ["GREETING"], model.value(), flush=True)
"""
MODEL = """\
def value():
    import madeforthistest
    return madeforthistest.VALUE
"""
TORCH = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", total.item(), "of", dist.get_world_size(), flush=True)
dist.destroy_process_group()
"""
FAILING_TORCH = """\
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("no data")
dist.barrier()
"""
JAX = """\
import os
import jax
jax.distributed.initialize(
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
)
print("processes", jax.process_count(), flush=True)
"""
BAR = """\
import sys, time
print("\\033]0;title\\007\\033[32mbegin", flush=True)
for step in range(2001):
    sys.stderr.write(f"\\r{step // 20:3}%|{'#' * 40}| {step}/2000 [00:01<00:01, 1000.00it/s]")
    time.sleep(0.001)
print("\\nend", flush=True)
"""
"""A bar of far more than 64 KiB without a newline."""
SUM = """\
from mpi4py import MPI
print("ranks", MPI.COMM_WORLD.size, MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), flush=True)
"""
FAILING_RANK = """\
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("no data")
MPI.COMM_WORLD.barrier()
"""


@pytest.fixture(scope="module", params=["v2alpha1", "v1alpha1"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster of one version."""
    with running_home(tmp_path_factory.mktemp("home"), "--api-version", request.param) as own:
        yield own


def write(folder: Path) -> str:
    """A script with a module beside it and requirements; returns its path."""
    with zipfile.ZipFile(folder / "madeforthistest-1.0-py3-none-any.whl", "w") as archive:
        info = "madeforthistest-1.0.dist-info"
        archive.writestr("madeforthistest.py", "VALUE = 42")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: madeforthistest\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (folder / "model.py").write_text(MODEL)
    (folder / "requirements.txt").write_text(f"--no-index\n--find-links {folder}\nmadeforthistest\n")
    (folder / "train.py").write_text(PLAIN)
    return str(folder / "train.py")


@ONE_VERSION
def test_plain(home: Home, tmp_path: Path) -> None:
    """Each node has the code, its requirements, arguments and variables; the code goes with the TrainJob."""
    script = write(tmp_path)

    result = home.trainer(
        "run", script, "--nodes", "2", "--name", "plain-script", "--env", "GREETING=hello", "--", "--epochs", "$(x) 3"
    )

    assert result.returncode == 0, result.stdout
    assert result.stderr.startswith("warning: spec.trainer.numNodes: the 2 nodes do not know each other")
    assert result.stderr.count("\n") == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("packed model.py, requirements.txt and train.py (")
    for node in ("0", "1"):
        assert f"node-{node} | node {node} ['--epochs', '$(x) 3'] hello 42" in lines
    assert lines[-1].startswith("plain-script  Complete  after ")
    (code,) = (name for name in _config_maps(home) if name.startswith("plain-script-code-"))
    home.trainer("delete", "plain-script")
    until(lambda: code not in _config_maps(home), "the code of the deleted TrainJob is gone")


@ONE_VERSION
def test_progress_bar(home: Home, tmp_path: Path) -> None:
    """A long bar is one line that is drawn anew on a terminal, its last state elsewhere, and progress in both."""
    (tmp_path / "train.py").write_text(BAR)

    shown = home.run_on_terminal("", "trainer", "run", str(tmp_path / "train.py"), "--name", "bar")

    assert "\033]" not in shown
    assert "\033[32mbegin\033[0m" in shown
    states = [int(step) for step in re.findall(r"#\| (\d+)/2000 ", shown)]
    assert len({*states}) > 2
    assert states == sorted(states)
    assert states[-1] == 2000
    lines = home.trainer("logs", "bar").stdout.splitlines()
    assert lines == ["begin", f"100%|{'#' * 40}| 2000/2000 [00:01<00:01, 1000.00it/s]", "end"]
    until(lambda: " 100 %" in home.trainer("get", "bar").stdout, "the bar is progress of the TrainJob")


def _config_maps(home: Home) -> list[str]:
    return [name.partition("/")[2] for name in home.kubectl.kubectl("get", "configmaps", "-o", "name").stdout.split()]


@MPI
@needs_module("mpi4py")
@ONE_VERSION
def test_failed_rank(home: Home, tmp_path: Path) -> None:
    """A rank that fails ends the others, which wait for it, and with them the training."""
    home.require_pod_networks()
    (tmp_path / "train.py").write_text(FAILING_RANK)

    options = ("--nodes", "2", "--runtime", "deepspeed-distributed", "--name", "rank-fails", "--timeout", "110")
    result = home.trainer("run", str(tmp_path / "train.py"), *options)

    assert result.returncode == 1, result.stdout + result.stderr
    explained = home.trainer("explain", "rank-fails")
    assert "| ValueError: no data\n" in explained.stdout, explained.stdout
    assert "MPI_ABORT" not in explained.stdout


@needs_module("torch")
@ONE_VERSION
def test_failed_process(home: Home, tmp_path: Path) -> None:
    """The condition has what the first process said that failed, and not what torchrun and others said of it."""
    (tmp_path / "train.py").write_text(FAILING_TORCH)

    result = home.trainer("run", str(tmp_path / "train.py"), "--procs", "2", "--name", "fails", "--timeout", "110")

    assert (result.returncode, "ChildFailedError" in result.stdout) == (1, True), result.stdout + result.stderr
    assert "note: trainer explain fails -n default says what to do" in result.stderr
    job = home.kubectl.get("trainjob", "fails") or {}
    (message,) = (each["message"] for each in job["status"]["conditions"] if each["type"] == "Failed")
    assert message.splitlines()[-1] == "[rank1]: ValueError: no data"
    assert "[rank0]" not in message


@ONE_VERSION
def test_from_python(home: Home, tmp_path: Path) -> None:
    """trainer.submit follows to the end, and says how it was."""
    script = write(tmp_path)
    program = f"""
import trainer
job = trainer.submit({script!r}, nodes=1, name="from-python", env={{"GREETING": "hi"}}, follow=True)
print(job)
"""

    result = home.run("python", "-c", program)

    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    lines = result.stdout.splitlines()
    assert "node-0 | node 0 [] hi 42" in lines
    told = ("packed ", "trainjob.trainer.kubeflow.org/", "node-0 | ", "from-python  ", "SubmittedJob(")
    assert [line for line in lines if not line.startswith(told)] == [], "log lines of the library"
    assert lines[-1] == "SubmittedJob(name='from-python', namespace='default', state='Complete')"


FUNCTION = """\
import asyncio, sys
import trainer

def learn(value, fails=False):
    import os
    import model
    print("got", value, model.value() + 1, "on", os.environ["JOB_COMPLETION_INDEX"], flush=True)
    print('[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {"currentStep": 1, "trainMetrics": {"loss": 0.5}}')
    if fails:
        raise RuntimeError("no data")

async def notebook():
    job = trainer.train(learn, {"value": [1, "two"]}, nodes=2, packages=[
        "--no-index", "--find-links " + sys.argv[1], "madeforthistest"], name="from-function")
    print(sorted(line for line in job.logs(follow=True, all_nodes=True) if "got" in line))
    print(job.wait(), [(each.name, each.value) for each in job.metrics()])
    try:
        trainer.train(learn, {"value": 1, "fails": True}, packages=[
            "--no-index", "--find-links " + sys.argv[1], "madeforthistest"], name="function-fails").wait(timeout=60)
    except trainer.TrainingFailedError as error:
        print(error)
    job.delete()

asyncio.run(notebook())
"""


@ONE_VERSION
def test_function(home: Home, tmp_path: Path) -> None:
    """trainer.train sends a function, from within a running event loop as notebooks have it, and says how it was."""
    write(tmp_path)
    program = tmp_path / "notebook.py"
    program.write_text(FUNCTION)

    result = home.run("python", str(program), str(tmp_path))

    expected = (
        "note: waiting for nodes of TrainJob from-function to start",
        "warning: spec.trainer.numNodes: the 2 nodes",
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert [line for line in result.stderr.splitlines() if not line.startswith(expected)] == []
    assert result.stdout.splitlines() == [
        """["node-0 | got [1, 'two'] 43 on 0", "node-1 | got [1, 'two'] 43 on 1"]""",
        "SubmittedJob(name='from-function', namespace='default', state='Complete') [('loss', 0.5)]",
        "TrainJob function-fails has failed: node-0: RuntimeError: no data",
    ]


@pytest.mark.parametrize(
    ("script", "framework", "arguments", "expected"),
    [
        pytest.param(TORCH, "torch", ["--procs", "2"], "sum 10.0 of 4", id="torch", marks=needs_module("torch")),
        pytest.param(JAX, "jax", [], "processes 2", id="jax", marks=needs_module("jax")),
        pytest.param(
            SUM, "deepspeed", ["--runtime", "deepspeed-distributed"], "ranks 2 1", id="mpi",
            marks=[MPI, needs_module("mpi4py")],
        ),
    ],
)  # fmt: skip
def test_framework(
    home: Home, tmp_path: Path, script: str, framework: str, arguments: list[str], expected: str
) -> None:
    """A script of a framework trains on two nodes with its runtime."""
    home.require_pod_networks()
    file = tmp_path / "train.py"
    file.write_text(script)

    result = home.trainer("run", str(file), "--nodes", "2", "--timeout", "110", *arguments)

    assert result.returncode == 0, result.stdout + result.stderr
    assert f" with runtime {framework}-distributed" in result.stdout
    assert expected in result.stdout
