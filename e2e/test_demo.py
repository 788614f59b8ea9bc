"""`trainer demo`: real training from nothing, and nothing left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from e2e.cluster import train_job
from e2e.kubectl import BIN
from e2e.processes import Process, descendants, running
from e2e.waiting import until

EXAMPLES = Path(__file__).parents[1] / "examples"
SLEEP = "import time; print('started'); time.sleep(60)"

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="the demo brings its own cluster"),
    pytest.mark.timeout(300),
]


def needs_framework(name: str) -> pytest.MarkDecorator:
    """Skips what pods cannot import."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed: make nightly installs it")


@pytest.mark.parametrize(
    ("example", "lines"),
    [
        pytest.param(
            "jax-digits", {"node-1 | node 1 of 2: 1 local of 2 devices"}, id="jax", marks=needs_framework("jax")
        ),
        pytest.param(
            "torch-digits",
            {f"node-{rank // 2} | rank {rank} of 4 on node {rank // 2}" for rank in range(4)},
            id="torch",
            marks=needs_framework("torch"),
        ),
    ],
)
def test_example(example: str, lines: set[str], tmp_path: Path) -> None:
    """The examples train on two nodes to more than 90 % accuracy, and the accuracy is the last word."""
    result = subprocess.run(
        [BIN / "trainer", "demo", EXAMPLES / example],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert lines <= set(result.stdout.splitlines())
    assert re.search(rf"^{example}  Complete", result.stdout, re.MULTILINE)
    accuracy = re.fullmatch(r"test accuracy: ([\d.]+) %", result.stdout.splitlines()[-1])
    assert accuracy is not None
    assert float(accuracy[1]) > 90
    assert list(tmp_path.iterdir()) == []


def demo(directory: Path, script: str) -> Process:
    """A demo of two nodes that is not started yet."""
    file = directory / "job.yaml"
    file.write_text(yaml.safe_dump(train_job("demo", script, nodes=2)))
    temporary = directory / "tmp"
    temporary.mkdir()
    return Process([str(BIN / "trainer"), "demo", str(file)], directory / "demo.log", {"TMPDIR": str(temporary)})


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[Process]:
    """A demo in the middle of its training, once it is started; ended with the test."""
    process = demo(tmp_path, SLEEP)
    yield process
    process.stop()


def test_failure(tmp_path: Path) -> None:
    """A job that fails makes the exit code 1, and the node that failed first is named; both do."""
    process = demo(tmp_path, "raise SystemExit(3)")
    process.start(ready="starting the dev cluster")

    assert process.wait(timeout=120) == 1
    assert re.search(r"^demo  Failed  after .* node-[01]: exit code 3$", process.output(), re.MULTILINE)


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGHUP, 129, id="closed terminal"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="SIGKILL"),
    ],
)
def test_no_process_is_left(number: int, exit_code: int, sleeping: Process, tmp_path: Path) -> None:
    """However a demo is ended in the middle of the training, no process of it is left."""
    sleeping.start(ready="starting the dev cluster")
    sleeping.wait_for_output("node-1 | started")
    family = descendants(sleeping.pid)
    assert len(family) >= 4  # cluster, manager, two nodes

    sleeping.send(number)

    assert sleeping.wait() == exit_code
    until(lambda: not any(map(running, family)), "all processes are gone", timeout=30)
    assert "Traceback" not in sleeping.output()
    if number != signal.SIGKILL:
        assert list((tmp_path / "tmp").iterdir()) == []


def test_reader_that_has_seen_enough(tmp_path: Path) -> None:
    """A demo whose output nobody reads any more, as in `trainer demo | head`, ends and leaves nothing."""
    ticks = "import os, time\nfor i in range(300): print('tick', os.environ['JOB_COMPLETION_INDEX']); time.sleep(0.1)"
    process = demo(tmp_path, ticks)
    with subprocess.Popen(
        process.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | process.environment
    ) as popen:
        assert popen.stdout is not None
        assert popen.stderr is not None
        while b"tick" not in popen.stdout.readline():
            pass
        family = descendants(popen.pid)
        popen.stdout.close()
        complaint = popen.stderr.read()

    assert (popen.returncode, complaint) == (1, b"")
    until(lambda: not any(map(running, family)), "all processes are gone", timeout=30)


def test_interrupt_while_the_cluster_starts(sleeping: Process) -> None:
    """Ctrl-C before anything runs leaves nothing either."""
    sleeping.start(ready="starting the dev cluster")
    family = until(lambda: descendants(sleeping.pid), "the cluster starts")

    sleeping.send(signal.SIGINT)

    assert sleeping.wait() == 130
    until(lambda: not any(map(running, family)), "all processes are gone", timeout=30)
    assert "Traceback" not in sleeping.output()
