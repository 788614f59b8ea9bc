"""The dev cluster process: its command line, its one line of output and its end."""

from __future__ import annotations

import io
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from trainer_devcluster.cluster import _announce, jobset_definition, main, parse_arguments
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from trainer_devcluster.kubelet import PodNetworkMode

# Jobs that a script runs in the background ignore SIGINT, and their children with them.
COMMAND = ["env", "--default-signal=HUP,INT", sys.executable, "-m", "trainer_devcluster", "--no-kubelet"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["--port", "http"], "--port: 'http' is not a port number", id="port"),
        pytest.param(["--pod-network", "vpn"], "--pod-network: 'vpn' is not one of auto, netns", id="network"),
        pytest.param(
            ["--feature-gates", "Elastic=true"],
            "--feature-gates: unrecognized feature gate 'Elastic', known are: ElasticJobSet",
            id="feature gate",
        ),
        pytest.param(["--gang-schedulers", "x"], "--gang-schedulers: 'x' is not one of coscheduling", id="gangs"),
        pytest.param(["--colour"], "unrecognized arguments: --colour", id="unknown option"),
    ],
)
def test_bad_arguments(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command line gets one line that names the option, and exit code 2."""
    with pytest.raises(SystemExit) as caught:
        parse_arguments(arguments)
    assert caught.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert complaint in lines[0]


def test_defaults() -> None:
    """Without arguments the cluster takes a free port, a directory of its own and the best network."""
    parsed = parse_arguments([])
    assert (parsed.port, parsed.data_dir, parsed.kubeconfig, parsed.no_kubelet) == (0, None, None, False)
    assert parsed.pod_network is PodNetworkMode.AUTO
    assert parsed.feature_gates == DEFAULT_FEATURE_GATES


def test_feature_gates() -> None:
    """They are written as for Kubernetes components."""
    assert parse_arguments(["--feature-gates", "ElasticJobSet=true"]).feature_gates == FeatureGates(
        elastic_job_set=True
    )


def test_node() -> None:
    """What the node has and who schedules its gangs is read from the command line."""
    parsed = parse_arguments(["--node-resources", "nvidia.com/gpu=8", "--gang-schedulers", "volcano", "--fake-pods"])
    assert parsed.node_resources == {"nvidia.com/gpu": "8"}
    assert [each.name for each in parsed.gang_schedulers] == ["volcano"]
    assert parsed.fake_pods


def test_unusable_data_directory(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A data directory that cannot be made is reported in one line."""
    (tmp_path / "file").write_text("")
    result = subprocess.run(
        [*COMMAND, "--data-dir", str(tmp_path / "file")], check=False, capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "trainer cluster: " in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("kubeconfig", "complaint"), [("/", "/: Is a directory"), ("file/x", "/file: File exists")])
def test_unusable_kubeconfig(tmp_path: Path, kubeconfig: str, complaint: str) -> None:
    """A kubeconfig that cannot be written is reported in one line."""
    (tmp_path / "file").write_text("")
    command = [*COMMAND, "--data-dir", str(tmp_path / "data"), "--kubeconfig", str(tmp_path / kubeconfig)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert complaint in result.stderr


def test_port_in_use(tmp_path: Path) -> None:
    """A taken port is reported in one line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*COMMAND, "--data-dir", str(tmp_path), "--port", port]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 2
    assert f"cannot listen on port {port} of 127.0.0.1 (Address already in use)" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_life_of_the_process(number: signal.Signals, tmp_path: Path) -> None:
    """It prints exactly one line when it is ready, writes a private kubeconfig, and ends with 0 at SIGTERM."""
    kubeconfig = tmp_path / "config" / "kubeconfig"
    command = [*COMMAND, "--data-dir", str(tmp_path / "data"), "--kubeconfig", str(kubeconfig)]
    with (tmp_path / "stderr").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("cluster ready: https://127.0.0.1:"), (tmp_path / "stderr").read_text()
            assert line.endswith(f" kubeconfig={kubeconfig}\n")
            assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
            process.send_signal(number)
            assert process.wait(timeout=30) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()
    log = (tmp_path / "stderr").read_text()
    assert "Traceback" not in log
    assert "Unclosed" not in log


async def test_the_line_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where output is not buffered and goes where the log goes, no line of the log comes into the middle of it."""
    writes: list[str] = []

    class Unbuffered(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stdout", Unbuffered())
    await _announce([], anyio.Event(), "cluster ready: there")
    assert writes == ["cluster ready: there\n"]


def test_jobset_definition_is_that_of_jobset() -> None:
    """The cluster brings the definition of JobSet along."""
    definition = jobset_definition()
    assert definition["metadata"]["name"] == "jobsets.jobset.x-k8s.io"


def test_main_is_the_entry_point() -> None:
    """`python -m trainer_devcluster` and the command line of the project start the same function."""
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
