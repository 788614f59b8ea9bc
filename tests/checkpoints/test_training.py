"""Trainings in processes of their own that get signals; e2e has those with PyTorch and several ranks."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.api.progress_tags import TAG
from trainer.checkpoints import store
from trainer.plugins.progress_reporter import FILTER
from trainer.progress.injection.install import install

SOURCES = sorted(Path(store.__file__).parent.rglob("*.py"))
LOOP = """
import os, signal, sys, threading
from trainer_reporter import checkpoints

def stop():
    os.kill(os.getpid(), signal.SIGTERM)

def handler(*_):
    print("own handler", flush=True)

{before}
newest = checkpoints.latest()
state = newest.load() if newest else {{"steps": []}}
print("after", newest.step if newest else 0, state["steps"], flush=True)
for step in range(len(state["steps"]) + 1, 7):
    state["steps"].append(step)
    {during}
    if checkpoints.due(step):
        checkpoints.save(state, step)
    if checkpoints.ending():
        checkpoints.end()
"""
STOP = "step == 3 and stop()"
OWN = "signal.signal(signal.SIGTERM, handler)"
CHAINED = """
def chain():
    found = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *given: (handler(), found(*given)))
"""
CHILD = """
def child():
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(writing, b"ready")
        signal.pause()
    os.read(reading, 5)
    os.kill(process, signal.SIGTERM)
    print("child", os.waitpid(process, 0)[1], flush=True)
"""
AT_EXIT = """
import atexit
atexit.register(lambda: step == 3 and print("exit"))
"""
ABORTS = """
class Native:
    def __del__(self):
        step == 3 and os.abort()
native = Native()
"""
MIDDLE = """
class Middle:
    def __reduce__(self):
        os.kill(os.getpid(), signal.{name})
        return print, ()
"""
LIMIT = """
import resource
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
"""


def environment(directory: Path, **variables: str) -> dict[str, str]:
    """The variables of a container that trains."""
    if not (directory / "reporter").exists():
        (directory / "reporter").mkdir()
        install(directory / "reporter")
    return {
        "PYTHONPATH": str(directory / "reporter"),
        "PYTHONWARNINGS": FILTER,
        "TRAINER_CHECKPOINT_DIR": str(directory / "checkpoints"),
        "PATH": os.environ["PATH"],
    } | variables


def run(directory: Path, before: str = "", during: str = "pass", **variables: str) -> tuple[int, list[str], list[str]]:
    """Exit code, what the script prints, and what we say, of a training of six steps."""
    result = subprocess.run(
        [sys.executable, "-c", LOOP.format(before=before, during=during)],
        env=environment(directory, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = result.stderr.replace(str(directory), "").splitlines()
    return result.returncode, [line for line in result.stdout.splitlines() if TAG not in line], said


def kept(directory: Path) -> list[str]:
    return sorted(each.name for each in (directory / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("before", "during", "printed"),
    [
        pytest.param("", STOP, [], id="no-handler"),
        pytest.param("signal.signal(signal.SIGTERM, signal.SIG_IGN)", STOP, [], id="ignored"),
        pytest.param(OWN, STOP, ["own handler"], id="script"),
        pytest.param("", f"step == 2 and {OWN}; {STOP}", ["own handler"], id="script-later"),
        pytest.param(CHAINED, f"step == 2 and chain(); {STOP}", ["own handler"], id="chained"),
        pytest.param("", "step == 3 and [stop(), stop()]", [], id="twice"),
        pytest.param(AT_EXIT, STOP, ["exit"], id="functions-of-the-exit"),
        pytest.param(ABORTS, STOP, [], id="libraries-that-abort-at-the-exit"),
        pytest.param(CHILD, f"step == 2 and child(); {STOP}", ["child 15"], id="child-processes-end-as-before"),
    ],
)
def test_a_signal(before: str, during: str, printed: list[str], tmp_path: Path) -> None:
    """A training saves after the step, ends with 75, and goes on from there when it is started again."""
    assert run(tmp_path, before, during) == (75, ["after 0 []", *printed], [])
    assert kept(tmp_path) == ["step-3"]
    assert run(tmp_path, before)[:2] == (0, ["after 3 [1, 2, 3]"])


def test_a_report(tmp_path: Path) -> None:
    """The checkpoint is reported to the TrainJob before the process ends."""
    result = subprocess.run(
        [sys.executable, "-c", LOOP.format(before="", during=STOP)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert f'{TAG} {{"checkpoint":{{"step":3,"path":"step-3"}}}}' in result.stdout.splitlines()


@pytest.mark.parametrize(
    ("before", "during", "variables", "code"),
    [
        pytest.param("", STOP, {"TRAINER_CHECKPOINT_DIR": ""}, -signal.SIGTERM, id="no-directory"),
        pytest.param("def due(step): return False\ncheckpoints.due = due", STOP, {}, -signal.SIGTERM, id="never-asks"),
        pytest.param(
            "due = checkpoints.due\n"
            "def elsewhere(step):\n"
            "    thread = threading.Thread(target=due, args=(step,))\n"
            "    thread.start(); thread.join()\n"
            "checkpoints.due = elsewhere",
            STOP,
            {},
            -signal.SIGTERM,
            id="not-the-main-thread",
        ),
        pytest.param("", "pass", {"TRAINER_CHECKPOINT_DIR": ""}, 0, id="no-directory-no-signal"),
    ],
)
def test_no_part_in_it(before: str, during: str, variables: dict[str, str], code: int, tmp_path: Path) -> None:
    """A training that keeps no checkpoints ends as it does without us."""
    assert run(tmp_path, before, during, **variables) == (code, ["after 0 []"], [])
    assert not (tmp_path / "checkpoints").exists() or kept(tmp_path) == []


def test_a_script_that_goes_on(tmp_path: Path) -> None:
    """A script that does not end saves once for a signal."""
    assert run(tmp_path, "checkpoints.ending = lambda: False", STOP) == (0, ["after 0 []"], [])
    assert kept(tmp_path) == ["step-3"]


def test_intervals(tmp_path: Path) -> None:
    """Checkpoints are saved when their time has come, and the newest two are kept."""
    assert run(tmp_path, TRAINER_CHECKPOINT_SECONDS="0.000001")[0] == 0
    assert kept(tmp_path) == ["step-5", "step-6"]
    assert run(tmp_path, TRAINER_CHECKPOINT_SECONDS="0")[1] == ["after 6 [1, 2, 3, 4, 5, 6]"]


def test_an_interval_without_a_checkpoint(tmp_path: Path) -> None:
    """The time to the next one is waited for also where one was not saved, so that a full disk costs little time."""
    before = (
        "import time\n"
        "now = [time.monotonic()]\n"
        "time.monotonic = lambda: now[0]\n"
        "checkpoints.save = lambda state, step: print('not saved', step)"
    )
    code, printed, _ = run(tmp_path, before, "now[0] += 10", TRAINER_CHECKPOINT_SECONDS="25")
    assert (code, printed) == (0, ["after 0 []", "not saved 3", "not saved 6"])


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param(
            {"TRAINER_CHECKPOINT_SECONDS": "soon"},
            "takes 600 for TRAINER_CHECKPOINT_SECONDS='soon': must be seconds, or 0 for none but at the end",
            id="seconds",
        ),
        pytest.param(
            {"TRAINER_CHECKPOINT_KEEP": "nan"},
            "takes 2 for TRAINER_CHECKPOINT_KEEP='nan': must be a number from 1",
            id="keep",
        ),
    ],
)
def test_wrong_settings(variables: dict[str, str], said: str, tmp_path: Path) -> None:
    """A wrong setting is said once, and its default counts."""
    assert run(tmp_path, during=STOP, **variables) == (75, ["after 0 []"], [f"trainer: {said}"])


POD = {"JOB_COMPLETION_INDEX": "0", "HOSTNAME": "tune-node-0-0"}


@pytest.mark.parametrize(
    ("before", "directory", "said"),
    [
        pytest.param(
            "open(os.environ['TRAINER_CHECKPOINT_DIR'], 'w').close()",
            "checkpoints",
            "no checkpoints: /checkpoints is not a directory: TRAINER_CHECKPOINT_DIR must be one",
            id="a-file",
        ),
        pytest.param(
            "os.mkdir(os.environ['TRAINER_CHECKPOINT_DIR'])\n"
            "open(os.environ['TRAINER_CHECKPOINT_DIR'] + '/.owner', 'w').write('ml/other')",
            "checkpoints",
            "no checkpoints: /checkpoints belongs to ml/other, and this is tune; give each training a directory of its "
            "own, or delete /checkpoints/.owner if that training does not need it any more",
            id="of-another-training",
        ),
        pytest.param(
            "import threading\nsave = checkpoints.save\n"
            "checkpoints.save = lambda state, step: save({'of': threading.Lock()}, step)",
            "checkpoints",
            "no checkpoint of step 1: TypeError(",
            id="a-state-that-cannot-be-saved",
        ),
    ],
)
def test_no_checkpoints(before: str, directory: str, said: str, tmp_path: Path) -> None:
    """What keeps checkpoints away is one sentence; the training goes on, and ends after a signal with 143."""
    variables = {**POD, "TRAINER_CHECKPOINT_SECONDS": "0.000001", "TRAINER_CHECKPOINT_DIR": str(tmp_path / directory)}
    code, printed, messages = run(tmp_path, before, STOP, **variables)
    assert (code, printed) == (143, ["after 0 []"])
    assert len(messages) == 1
    assert messages[0].startswith(f"trainer: {said}")


def test_owner(tmp_path: Path) -> None:
    """A training has its directory also after a restart, in a pod of another index; another training has not."""
    assert run(tmp_path, during=STOP, **POD)[0] == 75
    assert (tmp_path / "checkpoints" / ".owner").read_text() == "tune\n"
    node = POD | {"HOSTNAME": "tune-node-0-1"}
    assert run(tmp_path, **node)[1] == ["after 3 [1, 2, 3]"]
    code, printed, said = run(tmp_path, **POD | {"HOSTNAME": "other-node-0-0"})
    assert (code, printed, len(said)) == (0, ["after 0 []"], 1)


@pytest.mark.parametrize(
    ("before", "during", "code", "steps", "sentences"),
    [
        pytest.param(MIDDLE.format(name="SIGKILL"), "step == 4 and Middle()", -signal.SIGKILL, 3, 0, id="killed"),
        pytest.param(MIDDLE.format(name="SIGTERM"), "step == 4 and Middle()", 75, 5, 0, id="signal"),
        pytest.param(LIMIT, "limit(1 << 20) or 'x' * (step > 3) * (1 << 21)", 0, 3, 1, id="no-space"),
    ],
)
def test_the_middle_of_a_save(before: str, during: str, code: int, steps: int, sentences: int, tmp_path: Path) -> None:
    """What interrupts a save leaves the former checkpoint, from which the training goes on."""
    during = f"state['more'] = {during}; step == 6 and os._exit(0)"
    ended, printed, said = run(tmp_path, before, during, TRAINER_CHECKPOINT_SECONDS="0.000001")
    assert (ended, printed, len(said)) == (code, ["after 0 []"], sentences)
    assert run(tmp_path)[1] == [f"after {steps} {list(range(1, steps + 1))}"]


def test_python_3_8() -> None:
    """The files run with Python 3.8 and import the standard library only; what is for a framework imports that too."""
    for source in SOURCES:
        tree = ast.parse(source.read_text(), feature_version=(3, 8))
        imported = {
            each.name if isinstance(node, ast.Import) else node.module or ""
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for each in node.names
        }
        ours = {name for name in imported if name.startswith(("trainer.checkpoints", "trainer.progress.report"))}
        frameworks = {"transformers", "keras", "numpy"} if source.parent.name == "frameworks" else set()
        assert {name.partition(".")[0] for name in imported - ours} <= sys.stdlib_module_names | frameworks
