"""The wheels of all distributions, installed into an environment that knows nothing of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[1]
PYTORCH_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: old}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, image: example.com/a:1, command: [python, a.py]}]}}}
"""
pytestmark = pytest.mark.timeout(600)


class Environment:
    """A virtual environment, and a home for the commands that run in it."""

    def __init__(self, root: Path, wheels: Path, requirement: str) -> None:
        self._programs, self.home = root / "environment/bin", root / "home"
        self.home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", root / "environment"], check=True, timeout=60)
        constraints = ("--constraint", ROOT / "constraints.txt")
        self.run("pip", "install", "--quiet", *constraints, "--find-links", wheels, requirement)

    def start(self, program: str, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a program of the environment, both outputs of which are one."""
        path = f"{self._programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin"
        return subprocess.Popen(
            [self._programs / program, *arguments],
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": path} | pip_settings(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, program: str, *arguments: str | Path, succeeds: bool = True) -> str:
        """What a program prints."""
        process = self.start(program, *arguments)
        output, _ = process.communicate(timeout=300)
        assert (process.returncode == 0) == succeeds, output
        return output


def pip_settings() -> dict[str, str]:
    """Where pip finds packages on this machine."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of this checkout."""
    made = tmp_path_factory.mktemp("wheels")
    folders = [ROOT, *(path.parent for path in sorted(ROOT.glob("packages/*/pyproject.toml")))]
    pip = (sys.executable, "-m", "pip")
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", made, *folders], check=True, timeout=300)
    assert len(list(made.iterdir())) == len(folders)
    return made


def test_control_plane_alone(wheels: Path, tmp_path: Path) -> None:
    """trainer-operator needs no other distribution, and says which extra brings what is not there."""
    alone = Environment(tmp_path, wheels, "trainer-operator")
    (alone.home / "job.yaml").write_text(PYTORCH_JOB)
    assert "kind: CustomResourceDefinition" in alone.run("trainer", "crds")
    missing = {
        "cluster": ("up",),
        "dashboard": ("dashboard",),
        "v1": ("lint", "-f", "job.yaml"),
    }
    for extra, arguments in missing.items():
        assert f"pip install 'trainer-operator[{extra}]'" in alone.run("trainer", *arguments, succeeds=False)


def test_everything(wheels: Path, tmp_path: Path) -> None:
    """With all extras a script trains on this machine, the page shows it, and old jobs are converted."""
    whole = Environment(tmp_path, wheels, "trainer-operator[cluster,dashboard,initializers,testing,v1-jobs]")
    (whole.home / "train.py").write_text('print("trained")\n')
    (whole.home / "job.yaml").write_text(PYTORCH_JOB)
    whole.run("trainer", "up")
    try:
        assert "one  Complete" in whole.run("trainer", "run", "train.py", "--name", "one")
        assert "one" in whole.run("trainer", "get")
        assert "<title>" in page_of(whole)
    finally:
        whole.run("trainer", "down")
    assert "kind: TrainJob" in whole.run("trainer", "convert", "-f", "job.yaml")


def page_of(environment: Environment) -> str:
    """The page that `trainer dashboard` serves."""
    with environment.start("trainer", "dashboard", "--no-browser") as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
            assert address is not None
            with urlopen(address[0], timeout=20) as answer:
                return str(answer.read(), "utf-8")
        finally:
            process.terminate()
