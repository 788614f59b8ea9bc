"""Checkpoints of real PyTorch: processes that get signals, resume with another number of ranks, and fail in between."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.prerequisites import needs_module
from trainer.progress.injection.install import install

pytestmark = [pytest.mark.timeout(240), needs_module("torch", "numpy")]

SCRIPT = """
import os, random, signal, sys
import torch
import torch.distributed as dist
from trainer_reporter import checkpoints

kind, signal_name = sys.argv[1], sys.argv[5]
last, stop_at, stopped = map(int, sys.argv[2:5])
rank = 0
if "RANK" in os.environ:
    dist.init_process_group("gloo")
    rank = dist.get_rank()

def say(text):
    print(f"rank {rank} {text}\\n", end="", flush=True)

def stop():
    if rank == stopped:
        os.kill(os.getpid(), getattr(signal, signal_name))

class Trap:
    is_set = False

    def state_dict(self):
        if self.is_set:
            stop()
        return {"is_set": self.is_set}

    def load_state_dict(self, state):
        pass

torch.manual_seed(7)
random.seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
if kind == "plain":
    if dist.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
state = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "kind": kind, "trap": Trap()}
state["random"] = checkpoints.RandomState()

newest = checkpoints.latest()
if newest:
    assert newest.load(state)["kind"] == kind
say(f"begins after {newest.step if newest else 0}")
say(f"random {random.random()}")
for step in range(newest.step + 1 if newest else 1, last + 1):
    # All ranks have the same batch, so that the result does not depend on how many there are.
    loss = (model(torch.randn(4, 8, generator=torch.Generator().manual_seed(step))) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step == stop_at:
        state["trap"].is_set = kind == "trap"
        if not state["trap"].is_set:
            stop()
        say("is on its way")
    if checkpoints.due(step):
        checkpoints.save(state, step)
        say(f"random {random.random()}")
    if checkpoints.ending():
        checkpoints.end()
say(f"has {loss.item():.6f}")
os._exit(0)  # on a busy machine, threads of PyTorch now and then abort a process that Python takes down
"""
LAST = "200"
UNDISTURBED = [LAST, "0", "-1", "-"]
"""Arguments of a training to its last step."""
ENDLESS = ["1000000000", "5", "-1", "-"]
"""Arguments of one that goes on until it gets a signal, and says when it has begun."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def prepared(directory: Path) -> Path:
    """A directory with the reporter and the script."""
    (directory / "reporter").mkdir()
    install(directory / "reporter")
    (directory / "train.py").write_text(SCRIPT)
    return directory


@pytest.fixture(scope="module")
def undisturbed_loss() -> float:
    """The last loss of one process that no signal interrupts, and that keeps no checkpoints."""
    with tempfile.TemporaryDirectory() as name:
        directory = prepared(Path(name))
        command = [sys.executable, str(directory / "train.py"), "plain", *UNDISTURBED]
        code, output = run(directory, command, TRAINER_CHECKPOINT_DIR="")
    assert code == 0, output
    return float(said(output, "has")["0"])


def torchrun(directory: Path, ranks: int, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nproc-per-node={ranks}",
        *options,
        f"{directory}/train.py",
    ]


@contextmanager
def started(directory: Path, command: list[str], **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A training with the reporter; whatever is left of it ends with the block."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(directory / "reporter"),
        "PYTHONWARNINGS": "ignore::trainer_reporter.Never",
        "TRAINER_CHECKPOINT_DIR": str(directory / "checkpoints"),
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def run(directory: Path, command: list[str], *arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code and output of a training that ends by itself."""
    with started(directory, [*command, *arguments], **variables) as process:
        output, _ = process.communicate(timeout=200)
        return process.returncode, output


def kept(directory: Path) -> list[int]:
    return sorted(int(each.name.partition("-")[2]) for each in (directory / "checkpoints").glob("step-*"))


def said(output: str, words: str) -> dict[str, str]:
    """The last of what each rank has said in these words."""
    return dict(re.findall(rf"rank (\d+) {words} (\S+)", output))


@pytest.mark.parametrize(
    ("kind", "ranks", "then"),
    [
        pytest.param("plain", 1, 2, id="more"),
        pytest.param("sharded", 2, 1, id="sharded-fewer"),
        pytest.param("sharded", 2, 3, id="sharded-more"),
    ],
)
def test_interrupted(kind: str, ranks: int, then: int, directory: Path, undisturbed_loss: float) -> None:
    """All ranks save after the same step; with as many ranks or others the training ends as one without a signal."""
    command = torchrun(directory, ranks, "--max-restarts=3")
    code, output = run(directory, command, kind, LAST, "30", str(ranks - 1), "SIGTERM")
    assert code == 75, output
    assert "Traceback" not in output
    (step,) = kept(directory)
    assert 30 <= step <= 30 + 52
    randoms = said(output, "random")
    code, output = run(directory, torchrun(directory, then), kind, *UNDISTURBED)
    assert code == 0, output
    assert said(output, "begins after") == {str(rank): str(step) for rank in range(then)}
    resumed = said(output, "random")
    assert all(resumed[rank] == randoms[rank] for rank in {*resumed} & {*randoms})
    losses = [float(each) for each in said(output, "has").values()]
    assert losses == pytest.approx([undisturbed_loss] * then, rel=1e-3)


def test_another_node(directory: Path) -> None:
    """A node that has got no signal ends with 75, as the one that has."""
    nodes = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--rdzv-id=two", "--max-restarts=3"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        nodes[2] = f"--rdzv-endpoint=127.0.0.1:{server.getsockname()[1]}"
    command = [*torchrun(directory, 1, *nodes), "plain", *ENDLESS]
    with started(directory, command) as first, started(directory, command) as second:
        wait_for(first, "is on its way")
        wait_for(second, "is on its way")
        second.send_signal(signal.SIGTERM)
        outputs = [each.communicate(timeout=100)[0] for each in (first, second)]
        assert [first.returncode, second.returncode] == [75, 75], outputs
    assert len(kept(directory)) == 1


@needs_module("accelerate")
def test_accelerate(directory: Path) -> None:
    """`accelerate launch` of one process ends with 75 when it gets a signal, as the process does."""
    program = "from accelerate.commands.accelerate_cli import main; main()"
    command = [sys.executable, "-c", program, "launch", "--cpu", "--num_processes=1", f"{directory}/train.py"]
    with started(directory, [*command, "plain", *ENDLESS]) as process:
        wait_for(process, "is on its way")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=100)
        assert process.returncode == 75, output
    assert len(kept(directory)) == 1


def test_a_rank_is_killed(directory: Path) -> None:
    """A rank that is killed while it saves leaves the former checkpoint, and the training has failed."""
    seconds = {"TRAINER_CHECKPOINT_SECONDS": "0.000001"}
    code, output = run(directory, torchrun(directory, 2), "trap", LAST, "20", "1", "SIGKILL", **seconds)
    assert code == 1, output
    newest = kept(directory)[-1]
    assert 1 <= newest < 20
    code, output = run(directory, torchrun(directory, 2), "trap", *UNDISTURBED)
    assert code == 0, output
    assert said(output, "begins after") == {"0": str(newest), "1": str(newest)}


def test_a_state_that_needs_trust(directory: Path) -> None:
    """What cannot be loaded without running code is said when it is saved, and not only after an interruption."""
    lines = "import numpy, torch", "from trainer_reporter import checkpoints", "state = {'best': numpy.float64(3)}"
    (directory / "train.py").write_text("\n".join((*lines, *["checkpoints.save(state, 1)"] * 2)))
    code, output = run(directory, [sys.executable, str(directory / "train.py")])
    assert code == 0, output
    assert output.count("trainer: the state can only be loaded with load(state, weights_only=False): it has ") == 1


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Read the output of a process until it says something."""
    assert process.stdout is not None
    assert any(text in line for line in process.stdout)
