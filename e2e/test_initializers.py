"""Initializers and exporter of the shipped runtimes on a cluster: what they cannot do, the TrainJob says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.kep_examples import advertise_gpus

pytestmark = pytest.mark.timeout(180)

NAME = "torch-tune-llama-7b-export"
CONFIG = Path(__file__).parents[1] / "config" / "runtimes"
API = "https://kubernetes.default.svc"
TRUST = {"name": "SSL_CERT_FILE", "value": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"}


@pytest.fixture
def tuning(cluster: Cluster, tmp_path: Path) -> Cluster:
    """A namespace with the runtime that fetches and exports, a token of its own, and something to fetch."""
    cluster.require_local("the initializers")
    advertise_gpus(cluster)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.json").write_text("{}")
    runtime = yaml.safe_load((CONFIG / f"{NAME.replace('-', '_')}.yaml").read_text()) | {"kind": "TrainingRuntime"}
    cluster.kubectl("create", "serviceaccount", "reader")
    token = cluster.kubectl("create", "token", "reader").stdout.strip()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token"},
        "stringData": {"ACCESS_TOKEN": token},
    }
    cluster.apply(runtime, secret)
    return cluster


def train_job(source: Path, **spec: Any) -> dict[str, Any]:
    """One that fetches a directory of this machine, trains nothing, and leaves one file."""
    here = {"storageUri": f"file://{source}"}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": NAME},
            "trainer": {"command": ["sh", "-c", "cp /workspace/dataset/a.json /workspace/adapters"]},
            "datasetConfig": here,
            "modelConfig": {"input": here},
            **spec,
        },
    }


def why_failed(cluster: Cluster) -> str:
    """The first line of the condition Failed of the TrainJob, which has to fail."""
    cluster.wait_for_state("tune", "Failed", timeout=90)
    return str(cluster.condition("tune", "Failed")["message"].splitlines()[1])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        pytest.param(
            {"storageUri": "ftp://host/data"},
            "STORAGE_URI ftp://host/data: ftp:// is not supported: use one of az://",
            id="unknown-scheme",
        ),
        pytest.param(
            {"storageUri": f"{API}/api/absent", "env": [TRUST], "secretRef": {"name": "token"}},
            f"{API}/api/absent does not exist (404): check storageUri",
            id="404",
        ),
        pytest.param(
            {"storageUri": "s3://bucket/data", "env": [{"name": "ACCESS_KEY_ID", "value": "AKIA"}]},
            "ACCESS_KEY_ID and SECRET_ACCESS_KEY",
            id="missing-credentials",
        ),
    ],
)
def test_what_cannot_be_fetched(tuning: Cluster, tmp_path: Path, config: dict[str, Any], message: str) -> None:
    """The first attempt fails the TrainJob, whose condition has the step and what to do."""
    tuning.apply(train_job(tmp_path / "source", datasetConfig=config))

    facts = why_failed(tuning)
    assert ": container dataset-initializer exited with code 2: dataset: " in facts
    assert message in facts
    (job,) = (job for job in tuning.list("job") if "dataset-initializer" in job["metadata"]["name"])
    assert job["status"]["failed"] == 1


def test_what_a_training_cannot_export(tuning: Cluster, tmp_path: Path) -> None:
    """A training that leaves a link to the variables of the exporter gets none of its keys; the TrainJob says why."""
    config = {
        "input": {"storageUri": f"file://{tmp_path}/source"},
        "output": {"storageUri": f"file://{tmp_path}/trained", "secretRef": {"name": "token"}},
    }
    command = ["sh", "-c", "cd /workspace/adapters; echo {} >a.json; ln -s /proc/self/environ config.json"]
    tuning.apply(train_job(tmp_path / "source", modelConfig=config, trainer={"command": command}))

    facts = why_failed(tuning)

    assert "container model-exporter exited with code 2: export: 'config.json' is a symbolic link that leads" in facts
    assert sorted(path.name for path in (tmp_path / "trained").iterdir()) == [".trainer-index.json", "a.json"]
