"""CustomResourceDefinitions, manager and command of two minor versions that follow each other, in all combinations."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import audit
from e2e.cluster import Cluster, train_job, training_runtime
from e2e.dev_cluster import dev_cluster
from e2e.identity import NAMESPACE, write_credentials
from e2e.installation import CONFIG, HOST, free_ports, merged
from e2e.kubectl import BIN
from e2e.manager import Manager
from e2e.upgrades.released import Release, released
from e2e.waiting import until

FORMER, TREE = "former", "tree"
SLEEP = "import time; print('it trains', flush=True); time.sleep(600)"
ACCESS = {"Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret"}
RETRIED = "retried"
"""A runtime that starts a failed training once again."""
pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.timeout(1200),
]


@dataclass(frozen=True, slots=True)
class Versions:
    """The programs and manifests of both."""

    release: Release

    def bin(self, version: str) -> Path:
        return BIN if version == TREE else self.release.bin

    def config(self, version: str) -> Path:
        return CONFIG if version == TREE else self.release.config


@pytest.fixture(scope="module")
def versions() -> Versions:
    return Versions(released())


@pytest.fixture(scope="module")
def empty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster on which all combinations follow each other; its audit log says nothing about the roles of the tree."""
    directory = tmp_path_factory.mktemp("skew")
    with dev_cluster(directory, environment={audit.VARIABLE: str(directory / "audit.log")}) as cluster:
        yield cluster


@contextmanager
def installed(cluster: Cluster, versions: Versions, definitions: str, manager: str, directory: Path) -> Iterator[None]:
    """The definitions of one version under a manager, with its roles, of one; without webhooks, as of plain objects."""
    rendered = cluster.kubectl("kustomize", str(versions.config(manager) / "default")).stdout
    roles = [obj for obj in yaml.load_all(rendered, yaml.CSafeLoader) if obj["kind"] in ACCESS]
    apply(cluster, *roles)
    apply(cluster, *definitions_of(versions.config(definitions)))
    cluster.kubectl("wait", "--for=condition=Established", "crd/trainjobs.trainer.kubeflow.org", "--timeout=30s")
    apply(cluster, *runtimes())
    write_credentials(cluster, cluster.manager_kubeconfig)
    webhook, metrics, health = free_ports(3)
    shipped = yaml.safe_load((versions.config(manager) / "manager/configuration.yaml").read_text())
    own = {
        "webhook": {"enabled": False, "port": webhook},
        "metrics": {"bindAddress": f"{HOST}:{metrics}"},
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
    }
    file = directory / "manager.yaml"
    file.write_text(yaml.safe_dump(merged(shipped, own)))
    options = ["--kubeconfig", str(cluster.manager_kubeconfig), "--config", str(file)]
    process = Manager([str(versions.bin(manager) / "trainer"), "manager", *options], directory / "manager.log")
    process.start(ready="started manager")
    try:
        yield
    finally:
        process.stop()
        cluster.kubectl("delete", "lease", "trainer.kubeflow.org", "-n", NAMESPACE, "--ignore-not-found")


def apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def definitions_of(config: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all((config / "crd/trainer.kubeflow.org.yaml").read_text(), yaml.CSafeLoader))


def runtimes() -> list[dict[str, Any]]:
    """One that never starts a training again, and one that does so once."""
    retried = training_runtime(RETRIED, kind="ClusterTrainingRuntime")
    retried["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
    return [training_runtime("plain", kind="ClusterTrainingRuntime"), retried]


@dataclass(frozen=True, slots=True)
class Command:
    """`trainer` of a version in the namespace of a cluster."""

    bin: Path
    cluster: Cluster

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        place = ("--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.cluster.namespace)
        command: list[str | Path] = [self.bin / "trainer", *arguments, *place]
        return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)

    def succeed(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def submit(self, directory: Path, job: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        file = directory / f"{job['metadata']['name']}.yaml"
        file.write_text(yaml.safe_dump(job))
        result = self.run("run", "--no-follow", "-f", str(file))
        assert result.returncode == 0, result.stderr
        return result


@pytest.mark.parametrize("manager", [FORMER, TREE])
@pytest.mark.parametrize("definitions", [FORMER, TREE])
def test_combination(
    empty_cluster: Cluster, versions: Versions, definitions: str, manager: str, tmp_path: Path
) -> None:
    """Every command of both versions does on it what it is for."""
    with installed(empty_cluster, versions, definitions, manager, tmp_path):
        for command in (FORMER, TREE):
            with empty_cluster.in_namespace() as cluster:
                use(Command(versions.bin(command), cluster), tmp_path)


def use(trainer: Command, directory: Path) -> None:
    """Submit, look at, suspend, resume and delete trainings."""
    cluster = trainer.cluster
    trainer.submit(directory, train_job("done", "print('hello')"))
    trainer.submit(directory, train_job("kept", SLEEP))
    trainer.submit(directory, train_job("twice", "raise ValueError('no data')", runtime=RETRIED))
    cluster.wait_for_state("done", "Complete")
    cluster.wait_for_state("kept", "Running")
    cluster.wait_for_state("twice", "Failed")
    assert cluster.restarts("twice")[0] == 1
    assert trainer.succeed("logs", "done") == "hello\n"
    assert "it trains" in trainer.succeed("logs", "kept")
    listed = trainer.succeed("get")
    assert all(each in listed for each in ("Complete", "Running", "Failed"))
    assert "kept" in trainer.succeed("get", "kept")
    trainer.succeed("suspend", "kept")
    cluster.wait_for_state("kept", "Suspended")
    until(lambda: not of_job(cluster, "kept"), "its pods are gone")
    trainer.succeed("resume", "kept")
    cluster.wait_for_state("kept", "Running")
    trainer.succeed("delete", "kept")
    until(lambda: not of_job(cluster, "kept"), "its pods are gone")


def of_job(cluster: Cluster, name: str) -> list[str]:
    pods = [pod["metadata"] for pod in cluster.list("pods")]
    return [pod["name"] for pod in pods if pod["labels"].get("jobset.sigs.k8s.io/jobset-name") == name]


def test_field_that_the_definitions_lack(empty_cluster: Cluster, versions: Versions, tmp_path: Path) -> None:
    """The command of the tree says which field is dropped, and that the definitions are older."""
    with installed(empty_cluster, versions, FORMER, TREE, tmp_path), empty_cluster.in_namespace() as cluster:
        trainer = Command(BIN, cluster)
        submitted = trainer.submit(tmp_path, train_job("job", "print('hello')", maxRestarts=3))
        assert 'unknown field "spec.maxRestarts"' in submitted.stderr
        assert "the CRDs of this cluster do not have it; if they are older" in submitted.stderr
        cluster.wait_for_state("job", "Complete")
        assert "job has succeeded" in trainer.succeed("explain", "job")
