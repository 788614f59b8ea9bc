"""`trainer up`, `down` and `status`: the cluster in the background."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from e2e.cluster import train_job
from e2e.home import Home
from e2e.installation import free_ports
from e2e.kubectl import BIN
from e2e.processes import descendants, running
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    own = Home(tmp_path / "state")
    yield own
    own.trainer("down")


def test_objects_are_back_after_a_restart(home: Home) -> None:
    """`down` and `up` keep objects and make none twice; `down --delete` forgets them."""
    assert home.trainer("up").returncode == 0
    kubeconfig = str(home.state / "trainer" / "kubeconfig")
    kubectl = ["--kubeconfig", kubeconfig]
    assert home.run("kubectl", *kubectl, "create", "configmap", "kept", "--from-literal=a=b").returncode == 0
    uid = ["get", "configmap/kept", "namespace/default", "-o", "jsonpath={.items[*].metadata.uid}"]
    before = home.run("kubectl", *kubectl, *uid).stdout
    assert home.trainer("down").returncode == 0

    up = home.trainer("up")
    assert up.returncode == 0, up.stdout + up.stderr
    assert home.run("kubectl", *kubectl, *uid).stdout == before
    assert len(before.split()) == 2

    down = home.trainer("down", "--delete")
    assert down.stdout == "manager stopped\ncluster stopped\nobjects, volumes and logs deleted\n"
    assert home.trainer("up").returncode == 0
    assert "NotFound" in home.run("kubectl", *kubectl, "get", "configmap", "kept").stderr


def test_metrics(home: Home) -> None:
    """A Prometheus on this machine can read them where the user wants them; a manager that runs is left alone."""
    (port,) = free_ports(1)
    up = home.trainer("up", "--metrics-port", str(port))
    assert up.returncode == 0, up.stdout + up.stderr
    address = f"http://127.0.0.1:{port}/metrics"
    assert f"metrics: {address}" in up.stdout.splitlines()
    with urlopen(address, timeout=30) as answer:
        series = answer.read().decode()
    assert re.search(r"^trainer_build_info\{", series, re.MULTILINE)
    assert re.search(r'^rest_client_request_duration_seconds_count\{.*verb="GET"', series, re.MULTILINE)

    again = home.trainer("up", "--metrics-port", str(port))
    assert "--metrics-port takes effect after trainer down and trainer up" in again.stdout


def test_up_run_down(home: Home, tmp_path: Path) -> None:
    """After `up`, `run` finds the cluster by itself; `up` again changes nothing; `down` ends everything, twice."""
    up = home.trainer("up")
    assert up.returncode == 0, up.stdout + up.stderr
    kubeconfig = home.state / "trainer" / "kubeconfig"
    assert f"export KUBECONFIG={kubeconfig}" in up.stdout
    assert kubeconfig.stat().st_mode & 0o777 == 0o600

    status = home.trainer("status")
    assert status.returncode == 0
    assert re.search(r"^cluster +running, pid \d+, for .*, https://127\.0\.0\.1:\d+$", status.stdout, re.MULTILINE)
    assert re.search(r"^pod network +(netns|hosts|plain)", status.stdout, re.MULTILINE)
    assert re.search(r"^runtimes +.*torch-distributed", status.stdout, re.MULTILINE)
    assert re.search(r"^TrainJobs +0$", status.stdout, re.MULTILINE)

    pids = home.pids()
    assert home.trainer("up").returncode == 0
    assert home.pids() == pids

    (tmp_path / "job.yaml").write_text(yaml.safe_dump(train_job("demo", "print('hello')")))
    run = home.trainer("run", "-f", str(tmp_path / "job.yaml"))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "node-0 | hello" in run.stdout
    assert re.search(r"^TrainJobs +1 \(1 Complete\)$", home.trainer("status").stdout, re.MULTILINE)

    family = set(pids.values()).union(*map(descendants, pids.values()))
    assert home.trainer("down").stdout == "manager stopped\ncluster stopped\n"
    assert not any(map(running, family))
    assert home.trainer("status").returncode == 1
    assert home.trainer("down").returncode == 0


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


def test_two_at_once(home: Home) -> None:
    """Two `up` at the same time start one cluster."""
    command = [str(BIN / "trainer"), "up"]
    environment = os.environ | {"XDG_STATE_HOME": str(home.state)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]

    outputs = [process.communicate(timeout=120)[0] for process in both]

    assert [process.returncode for process in both] == [0, 0]
    pids = [re.findall(r"^(?:cluster|manager) +running, pid (\d+)", output, re.MULTILINE) for output in outputs]
    assert len(pids[0]) == 2
    assert pids[0] == pids[1]


def test_port_in_use_is_reported(home: Home) -> None:
    """A cluster that cannot start is reported with the end of its log, and nothing is left running."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        up = home.trainer("up", "--port", str(taken.getsockname()[1]))

    assert up.returncode == 1
    assert "error: the cluster exited with code 2" in up.stderr
    assert "in use" in up.stderr
    assert home.pids() == {}


@pytest.mark.parametrize("command", ["status", "down"])
def test_read_only_home(command: str) -> None:
    """`status`, and `down` with nothing to stop, need no place to write to."""
    result = Home(Path("/proc")).trainer(command)

    assert result.returncode == (1 if command == "status" else 0)
    assert ("not running" if command == "status" else "nothing to stop") in result.stdout
    assert not result.stderr
