"""`trainer up`, `down` and `status`: the cluster in the background."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from e2e.cluster import train_job
from e2e.home import Home
from e2e.installation import free_ports
from e2e.processes import descendants, running
from e2e.waiting import until
from trainer.cli.local.up import kept_port

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    own = Home(tmp_path / "state")
    yield own
    own.end()


def pids_of(up: subprocess.CompletedProcess[str]) -> list[str]:
    """The process ids of cluster and manager that a command has shown."""
    found = re.findall(r"^(?:cluster|manager) +running, pid (\d+)", up.stdout, re.MULTILINE)
    assert len(found) == 2, up.stdout
    return found


def test_up_run_down(home: Home, tmp_path: Path) -> None:
    """After `up`, `run` finds the cluster by itself; `up` again changes nothing, also without the logs; `down`
    ends everything, twice.

    Two `up` at once start one cluster. Objects outlive `down`, until `down --delete` forgets them.
    """
    port = str(free_ports(1)[0])
    with ThreadPoolExecutor(2) as threads:
        up, other = threads.map(lambda _: home.trainer("up", "--metrics-port", port), range(2))
    assert (up.returncode, other.returncode) == (0, 0), up.stdout + up.stderr + other.stdout + other.stderr
    assert pids_of(up) == pids_of(other)
    assert sum("--metrics-port takes effect after" in each.stdout for each in (up, other)) == 1
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        assert b"trainer_build_info{" in answer.read()
    assert f"export KUBECONFIG={home.kubeconfig}" in up.stdout
    assert home.kubeconfig.stat().st_mode & 0o777 == 0o600

    status = home.trainer("status")
    assert status.returncode == 0
    assert re.search(r"^cluster +running, pid \d+, for .*, https://127\.0\.0\.1:\d+$", status.stdout, re.MULTILINE)
    assert re.search(r"^pod network +(netns|hosts|plain)", status.stdout, re.MULTILINE)
    assert re.search(r"^runtimes +[1-9]\d*: trainer runtimes$", status.stdout, re.MULTILINE)
    assert re.search(r"^TrainJobs +0$", status.stdout, re.MULTILINE)

    pids = home.pids()
    for log in home.kubeconfig.parent.glob("*.log"):
        log.unlink()  # as a rotation does
    assert home.trainer("up").returncode == 0
    assert home.pids() == pids

    (tmp_path / "job.yaml").write_text(yaml.safe_dump(train_job("demo", "print('hello')")))
    run = home.trainer("run", "-f", str(tmp_path / "job.yaml"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "node-0 | hello" in run.stdout
    assert re.search(r"^TrainJobs +1 \(1 Complete\)$", home.trainer("status").stdout, re.MULTILINE)

    until(lambda: "Complete" in home.trainer("get", "--history").stdout, "it is recorded")
    kubeconfig = home.kubeconfig.read_bytes()
    family = set(pids.values()).union(*map(descendants, pids.values()))
    assert home.trainer("down").stdout == "recorder stopped\nmanager stopped\ncluster stopped\n"
    assert not any(map(running, family))
    assert home.trainer("status").returncode == 1
    assert home.trainer("down").returncode == 0

    assert home.trainer("up").returncode == 0
    assert home.kubeconfig.read_bytes() == kubeconfig, "the cluster has another address or other credentials"
    assert re.search(r"^TrainJobs +1 \(1 Complete\)$", home.trainer("status").stdout, re.MULTILINE)
    down = home.trainer("down", "--delete")
    assert down.stdout == (
        "recorder stopped\nmanager stopped\ncluster stopped\nhistory of 1 training deleted\n"
        "objects, volumes and logs deleted\n"
    )
    assert home.trainer("up").returncode == 0
    assert home.kubectl.get("trainjob", "demo") is None
    assert not home.trainer("get", "--history").stdout


def test_down_says_what_it_stops(home: Home, tmp_path: Path) -> None:
    """On a terminal `down` asks while something is trained, and a no leaves everything; in a pipe it goes on."""
    up = home.trainer("up", "--no-history")
    assert up.returncode == 0, up.stdout + up.stderr
    assert not re.search(r"^recorder", up.stdout, re.MULTILINE)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(train_job("demo", "import time; time.sleep(600)")))
    home.kubectl.kubectl("apply", "-f", str(tmp_path / "job.yaml"))

    asked = home.run_on_terminal("n\n", "trainer", "down")
    assert "default/demo (" in asked
    assert "stop the cluster? [y/N]" in asked
    assert "nothing was stopped" in asked
    assert len(home.pids()) == 2

    down = home.trainer("down").stdout
    assert down.startswith("this stops 1 training, which fails unless restarts are left:\n  default/demo (")
    assert down.endswith("\nmanager stopped\ncluster stopped\n")


def recorded_of(home: Home, name: str) -> str:
    """The list of the history of a cluster, once its training is recorded."""

    def listed() -> str | None:
        shown = home.trainer("get", "--history", "--context", f"trainer-{name}").stdout
        return shown if re.search(rf"of-{name} +Complete", shown) else None

    return until(listed, f"of-{name} is recorded")


@pytest.mark.timeout(600)
def test_two_clusters(home: Home, tmp_path: Path) -> None:
    """A second cluster has an address, objects and a context of its own; commands go to the current one.

    Stopping and deleting one of them leaves the other alone.
    """
    assert home.trainer("up").returncode == 0
    first = home.trainer("up", "--name", "b")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "context      trainer-b, the current one" in first.stdout
    assert "kubectl config use-context trainer-dev    # goes back from trainer-b" in first.stdout
    for name in ("dev", "b"):
        job = yaml.safe_dump(train_job(f"of-{name}", f"print('on {name}')"))
        (tmp_path / f"{name}.yaml").write_text(job)
        run = home.trainer("run", "-f", str(tmp_path / f"{name}.yaml"), "--context", f"trainer-{name}")
        assert f"node-0 | on {name}" in run.stdout, run.stdout + run.stderr
    assert home.trainer("get", "-o", "name").stdout.split("/")[-1] == "of-b\n"
    assert home.kubectl.get("trainjob", "of-dev") is None
    home.kubectl.kubectl("config", "use-context", "trainer-dev")
    assert home.trainer("get", "-o", "name").stdout.split("/")[-1] == "of-dev\n"
    assert home.kubectl.get("trainjob", "of-dev")
    listed = home.trainer("status", "--all").stdout
    assert re.findall(r"^(\*| )  (\w+) +(\w+) +(\S+) +https://127.0.0.1:\d+ +0", listed, re.MULTILINE) == [
        ("*", "dev", "running", "trainer-dev"),
        (" ", "b", "running", "trainer-b"),
    ]

    for name, other in (("dev", "b"), ("b", "dev")):
        assert f"of-{other}" not in recorded_of(home, name)

    down = home.trainer("down")
    assert down.stdout == "recorder stopped\nmanager stopped\ncluster stopped\nthe current context is trainer-b now\n"
    assert "note: other clusters run: trainer down --name b\n" in home.trainer("down").stderr
    stopped = home.trainer("get", "--context", "trainer-dev")
    assert "the cluster of `trainer up` is not running: start it (trainer up)" in stopped.stderr
    assert home.trainer("get", "of-b").returncode == 0
    assert "\nhistory of 1 training deleted\n" in home.trainer("down", "--name", "b", "--delete").stdout
    assert not (home.state / "trainer" / "clusters" / "b").exists()
    assert "there is no cluster b; there are: dev" in home.trainer("down", "--name", "b").stderr

    assert home.trainer("up").returncode == 0
    assert home.trainer("get", "of-dev").returncode == 0
    assert [line.split()[2] for line in home.trainer("history").stdout.splitlines()] == ["NAME", "of-dev"]
    assert home.kubectl.kubectl("config", "get-contexts", "-o", "name").stdout == "trainer-dev\n"


def test_port_of_another_process(home: Home) -> None:
    """A cluster whose port somebody has taken meanwhile does not start elsewhere unasked."""
    assert home.trainer("up", "--no-history").returncode == 0
    port = kept_port(home.kubeconfig)
    home.trainer("down")
    with socket.create_server(("127.0.0.1", port)):
        up = home.trainer("up", "--no-history")
        assert up.returncode == 1
        assert f"error: port {port} of this cluster is taken by another process" in up.stderr
        assert home.trainer("up", "--no-history", "--port", "0").returncode == 0


@pytest.mark.parametrize("half", ["cluster", "manager"])
def test_crash_is_reported_and_repaired(home: Home, half: str) -> None:
    """`status` reports a half that was killed, and `up` starts it again."""
    assert home.trainer("up").returncode == 0
    pids = home.pids()
    os.kill(pids[half], signal.SIGKILL)
    until(lambda: not running(pids[half]), f"the {half} is dead")

    status = until_reported(home, half)
    assert status.returncode == 1
    up = home.trainer("up")

    assert up.returncode == 0, up.stdout + up.stderr
    assert f"the {half} was ended by SIGKILL; starting it again" in up.stdout
    repaired = home.pids()
    assert repaired.keys() == {"cluster", "manager"}
    assert repaired[half] != pids[half]


def until_reported(home: Home, half: str) -> subprocess.CompletedProcess[str]:
    """`trainer status` once the record tells the end; the supervisor may need a moment to write it."""

    def reported() -> subprocess.CompletedProcess[str] | None:
        status = home.trainer("status")
        return (
            status if re.search(rf"^{half} +was ended by SIGKILL; its log is ", status.stdout, re.MULTILINE) else None
        )

    return until(reported, "status tells the crash")


@pytest.mark.parametrize("command", ["status", "down"])
def test_read_only_home(command: str) -> None:
    """`status`, and `down` with nothing to stop, need no place to write to."""
    result = Home(Path("/proc")).trainer(command)

    assert result.returncode == (1 if command == "status" else 0)
    assert ("not running" if command == "status" else "nothing to stop") in result.stdout
    assert not result.stderr
