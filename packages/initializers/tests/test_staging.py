from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from packages.initializers.tests.conftest import Initializer
from packages.initializers.tests.servers import AnswerFault, RangeServer
from trainer_initializers.parts import PART_SIZE

BIG = random.Random(8).randbytes(3 * PART_SIZE)


def start(initializer: Initializer, uri: str, **environ: str) -> subprocess.Popen[str]:
    """The program in a process of its own."""
    variables = {**initializer.variables(uri, **environ), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", "trainer_initializers", "dataset"],
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_killed_fetch_goes_on(initializer: Initializer, server: RangeServer) -> None:
    """After kill -9 no part is fetched again that was complete, and the target appears only when it is whole."""
    server.files["/a.bin"] = BIG
    server.faults.append(AnswerFault(stalls=True, skips=3))  # after the question for the size and two parts
    process = start(initializer, f"{server.url}/a.bin", TRANSFER_CONNECTIONS="1")
    assert server.stalled.wait(60)
    process.kill()
    process.communicate()
    assert not initializer.target.exists()
    server.requests.clear()
    assert initializer.run(f"{server.url}/a.bin") == 0
    assert server.ranges("/a.bin") == [(0, 1), (2 * PART_SIZE, 3 * PART_SIZE)]
    assert initializer.fetched() == {"a.bin": BIG}


def test_bytes_that_a_crash_has_lost_are_fetched_again(initializer: Initializer, server: RangeServer) -> None:
    """A part in the log whose bytes are not on the disk is fetched again."""
    server.files["/a.bin"] = BIG
    server.faults.append(AnswerFault(status=500, skips=3, times=8))
    assert initializer.run(f"{server.url}/a.bin", TRANSFER_CONNECTIONS="1") == 1
    staged = initializer.target.with_name(".dataset.fetching") / "files" / "a.bin"
    with staged.open("r+b") as opened:
        opened.seek(PART_SIZE + 5)
        opened.write(b"\0\0\0\0")
    server.requests.clear()
    assert initializer.run(f"{server.url}/a.bin", TRANSFER_CONNECTIONS="1") == 0
    assert initializer.fetched() == {"a.bin": BIG}
    assert (0, PART_SIZE) not in server.ranges("/a.bin")
    assert (PART_SIZE, 2 * PART_SIZE) in server.ranges("/a.bin")


def test_two_nodes_fetch_once(initializer: Initializer, server: RangeServer) -> None:
    """The second process waits for the first one and fetches nothing; a killed owner leaves no lock."""
    server.files["/a.bin"] = b"content"
    server.faults.append(AnswerFault(stalls=True, skips=1))
    first = start(initializer, f"{server.url}/a.bin")
    assert server.stalled.wait(60)
    second = start(initializer, f"{server.url}/a.bin")
    assert second.stderr is not None
    assert second.stderr.readline().startswith("waiting for another initializer")
    server.release()
    for process in (first, second):
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, output + errors
    assert server.ranges("/a.bin") == [(0, 1), None, (0, 1)]


def test_progress_is_printed(initializer: Initializer, server: RangeServer) -> None:
    """The log shows MiB as steps, in lines of the progress protocol."""
    server.files["/a.bin"] = BIG
    output, errors = start(initializer, f"{server.url}/a.bin").communicate(timeout=60)
    lines = [line for line in output.splitlines() if line.startswith("[trainer.kubeflow.org/")]
    assert lines, errors
    assert '"currentStep":48,"totalSteps":48' in lines[-1]


def test_memory_is_bounded(initializer: Initializer, server: RangeServer) -> None:
    """A file larger than the bound is fetched in less than 200 MB of memory."""
    server.files["/a.bin"] = bytes(256 << 20)
    program = (
        "import sys; from pathlib import Path; from trainer_initializers.__main__ import main; "
        "code = main(['dataset']); status = Path('/proc/self/status').read_text();"
        "print(status.partition('VmHWM:')[2].split()[0]); sys.exit(code)"
    )  # what getrusage tells begins with the memory of the process that forked
    environ = {**initializer.variables(f"{server.url}/a.bin"), "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert int(result.stdout.split()[-1]) * 1024 < 200e6


def test_target_that_holds_something_else(initializer: Initializer, server: RangeServer) -> None:
    """What nobody has fetched is neither mixed with a dataset nor removed."""
    server.files["/a.bin"] = b"x"
    initializer.target.mkdir(parents=True)
    (initializer.target / "mine.txt").write_text("precious")
    assert initializer.run(f"{server.url}/a.bin") == 2
    assert "exists and holds what was not fetched here, such as 'mine.txt': empty it" in initializer.message
    assert initializer.fetched() == {"mine.txt": b"precious"}


def test_target_with_another_source(initializer: Initializer, server: RangeServer) -> None:
    """A volume that was filled from somewhere else is not changed."""
    server.files.update({"/a.bin": b"x", "/b.bin": b"y"})
    assert initializer.run(f"{server.url}/a.bin") == 0
    assert initializer.run(f"{server.url}/b.bin") == 2
    assert f"holds {server.url}/a.bin: empty it" in initializer.message


def test_volume_that_is_too_small(
    initializer: Initializer, server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A volume without enough room is reported before the first byte is fetched."""
    server.files["/a.bin"] = BIG
    real = os.statvfs

    def nearly_full(path: Path) -> os.statvfs_result:
        values = list(real(path))
        values[4] = 100  # f_bavail
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "statvfs", nearly_full)
    assert initializer.run(f"{server.url}/a.bin") == 2
    assert "is too small: 48 MiB are to be fetched" in initializer.message
    assert "request a larger volume" in initializer.message
    assert server.ranges("/a.bin") == [(0, 1)]


def test_mounted_volume(initializer: Initializer, server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a volume mounted at the target, files appear when all of them are there, beside what the volume has."""
    target = initializer.target
    (target / "lost+found").mkdir(parents=True)
    monkeypatch.setattr(type(target), "is_mount", lambda path: path == target)
    server.files["/a.bin"] = BIG
    server.faults.append(AnswerFault(status=500, skips=3, times=8))
    assert initializer.run(f"{server.url}/a.bin", TRANSFER_CONNECTIONS="1") == 1
    assert initializer.fetched() == {}
    assert initializer.run(f"{server.url}/a.bin") == 0, initializer.message
    assert initializer.fetched() == {"a.bin": BIG}
    assert sorted(path.name for path in target.iterdir()) == [".trainer-index.json", "a.bin", "lost+found"]
