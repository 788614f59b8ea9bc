"""A stranger with the artefacts alone: pip on a clean machine, kubectl and Helm on a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.release.stranger import DIST, Environment, environment, page_at, write
from hack.images import CleanMachine
from hack.release.images import NAMES
from hack.release.manifests import ADDITIONS, INSTALLATIONS

PYTORCH_JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: old}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, image: example.com/a:1, command: [python, a.py]}]}}}
"""
RENDER = """\
import helm_python, sys
with helm_python.Chart.load(sys.argv[1]) as chart:
    for text in chart.render({}, name="kubeflow-trainer", namespace="trainer-system").values():
        print("---", text, sep="\\n")
"""
NOT_SERVED = {f"{name}{version}" for name in ("admissionpolicy", "prometheus") for version in ("", "-v1alpha1")}
"""Additions with kinds that the dev cluster does not have."""

pytestmark = pytest.mark.timeout(900)


def test_nothing_of_the_repository(machine: CleanMachine) -> None:
    """The machine has the artefacts and Python, and whoever reads the sums finds that they fit."""
    checked = machine.run("/bin/bash", "-c", f"cd {DIST} && sha256sum --check --strict --quiet SHA256SUMS")
    assert checked.stdout == ""
    assert machine.run("python3", "-c", "import trainer", check=False).returncode == 1
    assert machine.run("ls", str(Path(__file__).parents[2]), check=False).returncode != 0


def test_control_plane_alone(machine: CleanMachine) -> None:
    """trainer-operator needs no other distribution, and says which extra brings what is not there."""
    alone = environment(machine, "alone")
    alone.pip_install("trainer-operator")
    write(machine, "job.yaml", PYTORCH_JOB)
    assert "kind: CustomResourceDefinition" in alone.run("trainer", "crds")
    missing = {
        "cluster": ("up",),
        "dashboard": ("dashboard",),
        "v1-jobs": ("lint", "-f", "job.yaml"),
    }
    for extra, arguments in missing.items():
        assert f"pip install 'trainer-operator[{extra}]'" in alone.run("trainer", *arguments, succeeds=False)


def test_laptop(laptop: Environment) -> None:
    """With all extras a script trains, the page shows it, its history is kept, and old jobs are converted."""
    write(laptop.machine, "train.py", 'print("trained")\n')
    write(laptop.machine, "job.yaml", PYTORCH_JOB)
    laptop.run("trainer", "up")
    try:
        assert "one  Complete" in laptop.run("trainer", "run", "train.py", "--name", "one")
        assert "one" in laptop.run("trainer", "get")
        assert "trained" in laptop.run("trainer", "logs", "one")
        assert "one" in laptop.run("trainer", "history")
        with laptop.started("trainer", "dashboard", "--no-browser", until=r"http://127\.0\.0\.1:\d+/") as address:
            assert "<title>" in page_at(address[0])
    finally:
        laptop.run("trainer", "down")
    assert "kind: TrainJob" in laptop.run("trainer", "convert", "-f", "job.yaml")


@pytest.fixture(params=INSTALLATIONS)
def cluster(request: pytest.FixtureRequest, laptop: Environment) -> Iterator[tuple[str, str]]:
    """The version of the API, and the kubeconfig of an empty dev cluster for it."""
    version = str(request.param)
    kubeconfig = f"/root/{version}.kubeconfig"
    options = ("cluster", "--data-dir", f"/root/{version}", "--kubeconfig", kubeconfig)
    with laptop.started("trainer", *options, until="cluster ready: "):
        yield version, kubeconfig


def test_manifests(cluster: tuple[str, str], tools: Environment) -> None:
    """An API server takes every manifest, that of the installation also to keep it."""
    version, kubeconfig = cluster

    def apply(name: str, *options: str) -> str:
        return tools.run(
            "kubectl", f"--kubeconfig={kubeconfig}", "apply", "--server-side", *options, "-f", f"{DIST}/{name}"
        )

    namespace = "kubeflow-system" if version == "v1alpha1" else "trainer-system"
    tools.run("kubectl", f"--kubeconfig={kubeconfig}", "create", "namespace", namespace)
    install = f"install-{version}.yaml"
    assert "(server dry run)" in apply(install, "--dry-run=server", "--force-conflicts")
    assert "trainer-controller-manager" in apply(install, "--force-conflicts")
    for addition in sorted(ADDITIONS[version].keys() - NOT_SERVED):
        assert "(server dry run)" in apply(f"{addition}.yaml", "--dry-run=server")


def test_chart(tools: Environment, dist: Path) -> None:
    """Helm renders the packaged chart, whose images are those of the release."""
    write(tools.machine, "render.py", RENDER)
    (chart,) = dist.glob("kubeflow-trainer-*.tgz")
    rendered = tools.run("python", "render.py", f"{DIST}/{chart.name}")
    assert "kind: Deployment" in rendered
    ours = set(re.findall(rf"\S+/(?:{'|'.join(NAMES)})[:@][\w.:@]+", rendered))
    notes = (dist / "NOTES.md").read_text("utf-8")
    assert {re.split("[:@]", image.rpartition("/")[2])[0] for image in ours} == set(NAMES)
    assert all(image.rpartition("@")[2] in notes for image in ours)
