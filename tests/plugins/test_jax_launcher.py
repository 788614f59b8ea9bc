"""The program that starts several JAX processes on one node, run by the shells of this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainer.plugins.jax.plugin import SCRIPT, Split, launched
from trainer_devcluster.kubelet.variable_references import expand

SHELLS = {
    "sh": ["/bin/sh"],
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
}
WAIT = "import time; time.sleep(60)"
REPORT = """
import json, os, sys
names = ("JAX_PROCESS_ID", "JAX_LOCAL_DEVICE_IDS")
os.write(1, (json.dumps([os.environ.get(name) for name in names] + sys.argv[1:]) + "\\n").encode())
"""
STUBBORN = """
import os, pathlib, signal, sys, time
folder, name = pathlib.Path(sys.argv[1]), os.environ["JAX_PROCESS_ID"]
if name == "2":
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.01)
    sys.exit(5)
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"no\\n"))
(folder / name).touch()
while True:
    signal.pause()
"""
ENDS_WELL = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(os.environ["JAX_PROCESS_ID"]) // 100))
os.write(1, b"up\\n")
signal.pause()
"""


@pytest.fixture(params=[pytest.param(words, id=name) for name, words in SHELLS.items() if shutil.which(words[0])])
def shell(request: pytest.FixtureRequest) -> list[str]:
    """Each shell that this machine has."""
    words: list[str] = request.param
    return words


def start(shell: list[str], command: list[str], *, processes: int, devices: int = 0, node: int = 0) -> Any:
    """Start what the container of a node would run, as Kubernetes does: with references to variables expanded."""
    words = [expand(word, {"HOME": "/expanded"}) for word in launched(command, processes, devices)]
    # Nobody waits for five seconds here.
    words[2] = words[2].replace("sleep 5;", "sleep 0.1;")
    return subprocess.Popen(
        [*shell, *words[1:]],
        env=os.environ | {"JAX_PROCESS_ID": str(node)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code and output; the output ends only when all processes have ended."""
    try:
        output, errors = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output, errors


def python(source: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", source, *arguments]


def reports(output: str) -> Iterator[list[str | None]]:
    yield from sorted(map(json.loads, output.splitlines()))


def verdict(process: int, code: int) -> str:
    """What the launcher says at last when a process has failed."""
    return f"jax-launcher: JAX process {process} failed with exit code {code}\n"


@pytest.mark.parametrize(
    ("split", "node", "expected"),
    [
        pytest.param(Split(2, 0), 0, [["0", None], ["1", None]], id="cpu"),
        pytest.param(Split(3, 0), 2, [["6", None], ["7", None], ["8", None]], id="third-node"),
        pytest.param(Split(2, 1), 1, [["2", "0"], ["3", "1"]], id="one-gpu-each"),
        pytest.param(Split(2, 4), 0, [["0", "0,1,2,3"], ["1", "4,5,6,7"]], id="four-gpus-each"),
    ],
)
def test_each_process_is_reported_apart(
    shell: list[str], split: Split, node: int, expected: list[list[str | None]]
) -> None:
    """Numbers count over all nodes, GPUs within the node, and without GPUs JAX gets none."""
    process = start(shell, python(REPORT), processes=split.processes, devices=split.devices, node=node)

    code, output, errors = outcome(process)

    assert (code, errors) == (0, "")
    assert list(reports(output)) == expected


def test_the_command_is_passed_on_as_it_is(shell: list[str]) -> None:
    """Words with spaces, quotes and what a shell would take for its own arrive unchanged."""
    words = ["a b", "", "'", '"', "$HOME", "`date`", "*", "; exit 3", "\\"]

    code, output, _ = outcome(start(shell, python(REPORT, *words), processes=2))

    assert code == 0
    assert [report[2:] for report in reports(output)] == [words, words]


def test_references_to_variables_are_expanded_as_before(shell: list[str]) -> None:
    """Kubernetes expands $(NAME) in the command of the user, and in nothing of the launcher."""
    _, output, _ = outcome(start(shell, python(REPORT, "$(HOME)"), processes=2))

    assert [report[2:] for report in reports(output)] == [["/expanded"], ["/expanded"]]
    assert expand(launched([], 2, 0)[2], {"(node * processes + number": "?"}) == SCRIPT


@pytest.mark.parametrize("failing", range(3))
def test_all_end_when_one_fails(shell: list[str], failing: int) -> None:
    """Whichever process it is, the others are stopped at once, and the container has its exit code."""
    source = f"import os, sys\nif os.environ['JAX_PROCESS_ID'] == '{failing}': sys.exit(7)\n{WAIT}"

    assert outcome(start(shell, python(source), processes=3)) == (7, "", verdict(failing, 7))


def test_killed_by_a_signal(shell: list[str]) -> None:
    """A process that the kernel kills fails with 128 and the signal, as a container does."""
    source = f"import os, signal\nif os.environ['JAX_PROCESS_ID'] == '4': os.kill(os.getpid(), signal.SIGKILL)\n{WAIT}"

    assert outcome(start(shell, python(source), processes=3, node=1)) == (137, "", verdict(4, 137))


def test_processes_that_will_not_end_are_killed(shell: list[str], tmp_path: Path) -> None:
    """JAX catches SIGTERM: those that the failure of another leaves without peers are killed after a while."""
    process = start(shell, python(STUBBORN, str(tmp_path)), processes=3)

    assert outcome(process) == (5, "no\nno\n", verdict(2, 5))


def test_a_command_that_does_not_exist(shell: list[str]) -> None:
    """It ends with 127 and says what was not found, as a container of one process would."""
    code, output, errors = outcome(start(shell, ["no-such-command"], processes=2))

    assert (code, output) == (127, "")
    assert "no-such-command: not found" in errors


def test_no_word_of_the_shell_hides_a_program(shell: list[str]) -> None:
    """The command is a program even if the shell, or the launcher itself, has a function of the same name."""
    code, _, errors = outcome(start(shell, ["supervise"], processes=2))

    assert (code, "supervise: not found" in errors) == (127, True)


@pytest.mark.parametrize(
    ("node", "code"), [pytest.param(0, 0, id="they-end-well"), pytest.param(100, 2, id="they-fail")]
)
def test_termination_is_forwarded(shell: list[str], node: int, code: int) -> None:
    """When the pod is deleted the processes get SIGTERM, and what they make of it is the result."""
    process = start(shell, python(ENDS_WELL), processes=2, node=node)
    for _ in range(2):
        assert process.stdout.readline() == "up\n"

    process.send_signal(signal.SIGTERM)

    assert outcome(process) == (code, "", "")


def test_nobody_is_killed_when_the_pod_is_deleted(shell: list[str]) -> None:
    """Kubernetes waits as long as the pod allows, so the launcher waits for whoever still writes a checkpoint."""
    source = """
import os, signal, sys, time
def end(*_):
    time.sleep(0.3 * int(os.environ["JAX_PROCESS_ID"]))
    os.write(1, b"saved\\n")
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
os.write(1, b"up\\n")
signal.pause()
"""
    process = start(shell, python(source), processes=2)
    for _ in range(2):
        assert process.stdout.readline() == "up\n"

    process.send_signal(signal.SIGTERM)

    assert outcome(process) == (1, "saved\nsaved\n", "")
