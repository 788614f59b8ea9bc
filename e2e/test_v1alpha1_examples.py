"""TrainJobs of v1alpha1 as files, applied with kubectl, on `trainer up --api-version v1alpha1`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.debian_packages import needs
from e2e.home import Home
from e2e.kubectl import Kubectl
from e2e.tiny_llama import make_sources, torchtune

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = Path(__file__).parent / "v1alpha1"
FLUX = Path(__file__).parent / "stand_ins" / "flux" / "flux"

MPI = needs("openmpi-bin", "openssh-server")
TORCHTUNE = pytest.mark.skipif(
    find_spec("torchtune") is None, reason="torchtune is not installed: make nightly installs it"
)
pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster that serves v1alpha1."""
    own = Home(tmp_path_factory.mktemp("home"))
    up = own.trainer("up", "--api-version", "v1alpha1", "--node-resources", "cpu=64,nvidia.com/gpu=8")
    assert up.returncode == 0, up.stdout + up.stderr
    yield own
    own.trainer("down", "--delete")


@pytest.fixture(scope="module")
def kubectl(home: Home) -> Kubectl:
    """Of its administrator, where pods have networks of their own."""
    if "pod network  netns" not in home.trainer("status").stdout:
        pytest.skip("pods share one network on this machine")
    return Kubectl(home.kubeconfig)


def trained(home: Home, kubectl: Kubectl, file: Path, name: str) -> list[str]:
    """Apply a file, and wait until its TrainJob is Complete; returns its log."""
    kubectl.kubectl("apply", "-f", str(file))
    waited = home.run(
        "kubectl", *kubectl.command("wait", f"trainjob/{name}", "--for=condition=Complete", "--timeout=110s")[1:]
    )
    assert waited.returncode == 0, waited.stderr + home.trainer("logs", name, "--all").stdout
    assert home.trainer("get", name).stdout.splitlines()[1].split()[:2] == [name, "Complete"]
    return home.trainer("logs", name).stdout.splitlines()


@pytest.mark.parametrize(
    "example", ["jax-digits", "torch-digits", "xgboost-digits", pytest.param("mlx-digits", marks=MPI)]
)
def test_converted_example(home: Home, kubectl: Kubectl, example: str) -> None:
    """Converted it trains on two nodes, on a runtime of the released Trainer, to more than 90 % accuracy."""
    converted = home.trainer("convert", "--api-version", "v1alpha1", "-f", str(EXAMPLES / example / "trainjob.yaml"))
    assert (converted.returncode, converted.stderr) == (0, "")
    file = home.state / f"{example}.yaml"
    # The released runtimes have no working directory.
    file.write_text(converted.stdout.replace("- train.py\n", "- /workspace/train.py\n"))
    log = trained(home, kubectl, file, example)
    (accuracy,) = re.findall(r"^test accuracy: ([\d.]+) %$", "\n".join(log), re.MULTILINE)
    assert float(accuracy) > 90


@MPI
def test_deepspeed(home: Home, kubectl: Kubectl) -> None:
    """mpirun starts the processes of launcher and node by the host file, and they reduce over the network."""
    assert sorted(trained(home, kubectl, FILES / "deepspeed.yaml", "deepspeed")) == [
        f"rank {rank} of 4 on deepspeed-{node}-0-0: 1111" for rank, node in enumerate(["launcher"] * 2 + ["node"] * 2)
    ]


@TORCHTUNE
def test_torchtune(home: Home, kubectl: Kubectl, tmp_path: Path) -> None:
    """Initializers fetch, and torchtune trains adapters on one device, in the recipe that the arguments ask for."""
    kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(torchtune()))
    make_sources(tmp_path)
    file = tmp_path / "torchtune.yaml"
    file.write_text((FILES / "torchtune.yaml").read_text().replace("SOURCES", str(tmp_path)))
    log = trained(home, kubectl, file, "torchtune")
    assert "Running LoRAFinetuneRecipeSingleDevice with resolved config:" in log
    assert {"dtype: fp32", "  lora_rank: 4", "  data_dir: /workspace/dataset/data"} <= {*log}
    assert any(re.search(r"1\|8\|Loss: \d", line) for line in log)
    fetched = home.trainer("logs", "torchtune", "--node", "model-initializer-0").stdout
    assert f"file://{tmp_path}/model is in /workspace/model: 3 files, " in fetched


def test_flux(home: Home, kubectl: Kubectl) -> None:
    """Each broker has a rank, with a stand-in for Flux that a patch mounts."""
    kubectl.kubectl("create", "configmap", "flux", f"--from-file={FLUX}")
    log = trained(home, kubectl, FILES / "flux.yaml", "flux")
    assert sorted(log) == ["0", "1", "flux: 2 brokers are online"]


def test_patches(home: Home, kubectl: Kubectl) -> None:
    """What two managers say reaches the JobSet, each entry has a time, and a change needs a suspended TrainJob."""
    assert trained(home, kubectl, FILES / "patches.yaml", "patches") == ["mounted"]
    (stored, jobset) = (found(kubectl, kind, "patches") for kind in ("trainjob", "jobset"))
    times = [patch["time"] for patch in stored["spec"]["runtimePatches"]]
    assert times[0] == "2026-01-01T00:00:00Z" < times[1]
    assert jobset["metadata"]["labels"]["team"] == "vision"
    (node,) = jobset["spec"]["replicatedJobs"]
    pods = node["template"]["spec"]["template"]
    assert pods["metadata"]["annotations"]["example.com/cost-centre"] == "42"
    assert pods["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert [each["key"] for each in pods["spec"]["tolerations"]] == ["nvidia.com/gpu"]
    assert pods["spec"]["terminationGracePeriodSeconds"] == 5


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"trainer": {"image": "other"}}, "spec.trainer: Invalid value: ", id="what is immutable"),
        pytest.param({"runtimePatches": []}, "Forbidden: RuntimePatches can only be modified when", id="patches"),
        pytest.param({"podTemplateOverrides": []}, 'unknown field "spec.podTemplateOverrides"', id="of older releases"),
    ],
)
def test_refused_changes(home: Home, kubectl: Kubectl, change: dict[str, Any], text: str) -> None:
    """The API server refuses what the released Trainer does, and what its version has no more."""
    job = yaml.safe_load((FILES / "patches.yaml").read_text())
    kubectl.kubectl("apply", "-f", str(FILES / "patches.yaml"))
    job["spec"] |= change
    file = home.state / "changed.yaml"
    file.write_text(yaml.safe_dump(job))
    refused = kubectl.kubectl("apply", "-f", str(file), check=False)
    assert refused.returncode == 1
    assert text in refused.stderr


def test_own_runtime(home: Home, kubectl: Kubectl) -> None:
    """A TrainJob builds on a runtime of its namespace; its initializers get what the TrainJob says."""
    log = trained(home, kubectl, FILES / "own-runtime.yaml", "own")
    assert log == ["node 0 of 2 at 0.1", "s3://data/digits from http://storage", "s3://models/tiny as ann"]
    kubectl.kubectl("delete", "-f", str(FILES / "own-runtime.yaml"))


def found(kubectl: Kubectl, kind: str, name: str) -> dict[str, Any]:
    """An object that is there."""
    obj = kubectl.get(kind, name)
    assert obj is not None
    return obj
