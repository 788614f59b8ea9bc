"""The scripts that install and start Flux, run by a real bash in a directory that stands for the container."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.framework.pipeline import Pipeline
from trainer.framework.startup.registry import Registry
from trainer.plugins.flux.plugin import Flux
from trainer.plugins.jobset import JobSetPlugin

FLUX = """#!/bin/bash
if [ "$1 $2" = "R encode" ]; then echo "R of ${*:3}"; exit; fi
echo "$PATH" > $root/path
printf '%s\\n' "$@" >> $root/arguments
"""
BROKER = """broker
--config-path=/mnt/flux/config/etc/flux/config
-Scron.directory=/mnt/flux/config/etc/flux/system/cron.d
-Stbon.fanout=256
-Srundir=/mnt/flux/config/run/flux
-Sstatedir=/mnt/flux/config/var/lib/flux
-Slocal-uri=local:///mnt/flux/config/run/flux/local
-Slog-stderr-level=4
-Slog-stderr-mode=local
"""
MEET = ["bash", "-c", 'touch "$0"; exec "$@"', "/mnt/flux/brokers-have-met"]


@dataclass(frozen=True)
class Pod:
    """A directory with what the containers of a pod have, and the scripts of a TrainJob with two nodes."""

    root: Path
    hostname: str = "demo-node-0-0"

    def prepare(self, flux: str = FLUX) -> None:
        """Mount the certificate and put programs in place."""
        for directory in ("bin", "curve", "opt/software"):
            (self.root / directory).mkdir(parents=True, exist_ok=True)
        (self.root / "curve" / "curve.cert").write_text("certificate")
        self.program("flux", flux.replace("$root", str(self.root)))
        self.program("uname", f"#!/bin/sh\necho {self.hostname}\n")
        self.program("sleep", f"#!/bin/sh\necho $1 >> {self.root}/slept\n")

    def program(self, name: str, text: str) -> None:
        """Put a program in the directory that is searched first."""
        file = self.root / "bin" / name
        file.write_text(text)
        file.chmod(0o755)

    def command(self, script: str, *arguments: str) -> list[str]:
        """What starts a script, with its paths in the directory."""
        blueprint = runtime(replicated_job("node"), policy={"numNodes": 2, "flux": {}})
        pipeline = Pipeline(Registry([Flux(StaticReader()), JobSetPlugin(StaticReader())]))
        components = pipeline.build(train_job(), blueprint)
        (data,) = (each.object["data"] for each in components if each.resource.kind == "ConfigMap")
        text = data[script]
        for path in ("/mnt/flux", "/opt/", "/curve/", "/tmp/fluxout"):
            text = text.replace(f" {path}", f" {self.root}{path}").replace(f"={path}", f"={self.root}{path}")
        file = self.root / script
        file.write_text(text)
        return ["/bin/bash", str(file), *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """That of the container."""
        return {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            self.command(script, *arguments),
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def read(self, path: str) -> str:
        """A file, with the paths that it has in the container."""
        return (self.root / path).read_text().replace(str(self.root), "")


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    """The pod that leads, after its init container."""
    made = Pod(tmp_path)
    made.prepare()
    assert made.run("init.sh").returncode == 0
    return made


def follower(pod: Pod, flux: str = FLUX) -> Pod:
    """The other pod."""
    other = Pod(pod.root, "demo-node-0-1")
    other.prepare(flux)
    return other


def test_installation(tmp_path: Path) -> None:
    """View and software of the image are copied, links as links, and the configuration is written; also once more."""
    pod = Pod(tmp_path)
    pod.prepare()
    (tmp_path / "opt/views/._view/abc/bin").mkdir(parents=True)
    (tmp_path / "opt/views/._view/abc/bin/flux").symlink_to("/opt/software/flux-core/bin/flux")
    (tmp_path / "opt/software/flux-core").mkdir()
    (tmp_path / "opt/software/flux-core/version").write_text("1")
    for _ in range(2):
        result = pod.run("init.sh")
        assert (result.returncode, result.stderr) == (0, "")

    assert (tmp_path / "mnt/flux/view/bin/flux").readlink() == Path("/opt/software/flux-core/bin/flux")
    assert pod.read("mnt/flux/software/flux-core/version") == "1"
    assert pod.read("mnt/flux/config/etc/flux/system/hostlist") == "demo-node-0-[0-1]\n"
    assert pod.read("mnt/flux/config/etc/flux/config/broker.toml").count("[bootstrap]") == 1
    assert (tmp_path / "mnt/flux/flux-operator-done.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["lmp -v 2"], ["lmp", "-v", "2"], id="one-argument"),
        pytest.param(["lmp *"], ["lmp", "*"], id="no-files"),
        pytest.param(["bash", "-c", "echo '1  2'", ""], ["bash", "-c", "echo '1  2'", ""], id="word-by-word"),
    ],
)
def test_lead(pod: Pod, arguments: list[str], words: list[str]) -> None:
    """The broker of the first node runs the command on all nodes, word for word."""
    result = pod.run("entrypoint.sh", *arguments)

    assert result.returncode == 0, result.stderr
    run = ["flux", "run", "-N", "2", "-n", "2", "-o", "cpu-affinity=off"]
    assert pod.read("arguments") == BROKER + "\n".join([*MEET, *run, *words]) + "\n"
    assert pod.read("mnt/flux/config/etc/flux/system/R") == "R of --hosts=demo-node-0-[0-1] --cores=0\n"
    certificate = pod.root / "mnt/flux/config/etc/curve/curve.cert"
    assert (certificate.read_text(), oct(certificate.stat().st_mode & 0o777)) == ("certificate", "0o600")
    assert (pod.root / "mnt/flux/flux-operator-complete.txt").exists()


def test_no_command(pod: Pod) -> None:
    """The broker of the first node stays, without a program of its own."""
    result = pod.run("entrypoint.sh", "")

    assert (result.returncode, result.stdout) == (0, "no command: the broker waits for yours until it is shut down\n")
    assert pod.read("arguments") == f"{BROKER}-Sbroker.rc2_none\n"


def test_exit_code(pod: Pod) -> None:
    """The container ends as the command does."""
    pod.prepare(FLUX + "exit 7\n")
    assert pod.run("entrypoint.sh", "lmp").returncode == 7


RUNS = '[ "$1" != broker ] || exec "${@:10}"\n'
"""What a broker does that all others have joined."""


def test_lead_that_starts_again(pod: Pod) -> None:
    """It waits for pods that may still come, and for none that has ended."""
    pod.prepare(FLUX + "exit 7\n")
    assert [pod.run("entrypoint.sh", "lmp").returncode for _ in range(2)] == [7, 7]

    pod.prepare(FLUX + RUNS + "exit 7\n")
    assert pod.run("entrypoint.sh", "lmp").returncode == 7
    again = pod.run("entrypoint.sh", "lmp")
    assert again.returncode == 1
    assert "the brokers of the other nodes have ended: all pods must start again" in again.stderr


def test_single_node_that_starts_again(pod: Pod) -> None:
    """It waits for nobody, and runs the command again."""
    (pod.root / "mnt/flux/config/etc/flux/system/hostlist").write_text("demo-node-0-[0]\n")
    pod.prepare(FLUX + RUNS + "exit 7\n")
    assert [pod.run("entrypoint.sh", "lmp").returncode for _ in range(2)] == [7, 7]


def test_follower(pod: Pod) -> None:
    """The other broker has no command, and starts again until it has ended well."""
    other = follower(pod, FLUX + '[ "$(wc -l < $root/arguments)" -ge 27 ]\n')
    result = other.run("entrypoint.sh", "lmp")

    assert result.returncode == 0, result.stderr
    assert pod.read("arguments") == BROKER * 3
    assert pod.read("slept") == "15\n15\n"


@pytest.mark.parametrize("leads", [True, False], ids=["lead", "follower"])
def test_end(pod: Pod, leads: bool) -> None:
    """A signal to end reaches the broker, for which the container waits, and which does not start again."""
    waiting = (
        "import signal, sys; signal.signal(15, lambda *_: sys.exit(9)); print('ready', flush=True); signal.pause()"
    )
    flux = FLUX + f'exec python3 -c "{waiting}"\n'
    one = pod if leads else follower(pod)
    one.prepare(flux)
    with subprocess.Popen(
        one.command("entrypoint.sh", "lmp"), env=one.environment, cwd=one.root, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == (9 if leads else 143)
    assert (pod.root / "mnt/flux/flux-operator-complete.txt").exists()


def test_python_of_the_view(pod: Pod) -> None:
    """Flux finds its modules; links of the view that would stand in for the Python of the image are removed."""
    view = pod.root / "mnt/flux/view"
    (view / "lib/python3.11/site-packages").mkdir(parents=True)
    (view / "bin").mkdir()
    pod.program("python3.11", "")
    (view / "bin/python3.11").symlink_to(pod.root / "bin/python3.11")
    (view / "bin/python3").symlink_to("/nowhere")
    for _ in range(2):
        result = pod.run("entrypoint.sh", "lmp")
        assert result.returncode == 0, result.stderr

    assert [each.name for each in (view / "bin").iterdir()] == ["python3.11"]
    assert (view / "lib/python3").readlink() == view / "bin/python3.11"
    assert pod.read("path").endswith(":/mnt/flux/view/bin\n")
    environment = pod.read("mnt/flux/flux-view.sh").splitlines()
    assert "export PYTHONPATH=/mnt/flux/view/lib/python3.11/site-packages" in environment
    assert "export fluxsocket=local:///mnt/flux/config/run/flux/local" in environment
    assert pod.read("mnt/flux/load-fluxion.sh").splitlines()[0] == "flux module remove sched-simple"


def test_no_flux(pod: Pod) -> None:
    """The log says what is missing."""
    (pod.root / "bin/flux").unlink()
    result = pod.run("entrypoint.sh", "lmp")
    assert (result.returncode, result.stderr) == (
        127,
        "flux is neither in this image nor in that of FLUX_VIEW_IMAGE\n",
    )
