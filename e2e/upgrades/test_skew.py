"""CustomResourceDefinitions, manager and command of two minor versions that follow each other, in all combinations."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import audit
from e2e.cluster import Cluster, train_job, training_runtime
from e2e.dev_cluster import dev_cluster
from e2e.upgrades.released import released
from e2e.upgrades.versions import Site, Version
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


@pytest.fixture(scope="module")
def versions() -> dict[str, Version]:
    """Both, with their programs and manifests."""
    return {FORMER: Version.of(released()), TREE: Version.tree()}


@pytest.fixture(scope="module")
def empty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster on which all combinations follow each other; its audit log says nothing about the roles of the tree."""
    directory = tmp_path_factory.mktemp("skew")
    with dev_cluster(directory, environment={audit.VARIABLE: str(directory / "audit.log")}) as cluster:
        yield cluster


@contextmanager
def installed(cluster: Cluster, definitions: Version, manager: Version, directory: Path) -> Iterator[None]:
    """The definitions of one version under a manager, with its roles, of one; without webhooks, as of plain objects."""
    with closing(Site(cluster, directory)) as site:
        site.apply(definitions, {"CustomResourceDefinition"})
        site.apply(manager, ACCESS)
        cluster.apply(*runtimes())
        site.roll_out(manager, webhooks=False)
        yield


def runtimes() -> list[dict[str, Any]]:
    """One that never starts a training again, and one that does so once."""
    retried = training_runtime(RETRIED, kind="ClusterTrainingRuntime")
    retried["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
    return [training_runtime("plain", kind="ClusterTrainingRuntime"), retried]


@dataclass(frozen=True, slots=True)
class Command:
    """`trainer` of a version in the namespace of a cluster."""

    version: Version
    cluster: Cluster

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.version.run(*arguments, "--namespace", self.cluster.namespace, kubeconfig=self.cluster.kubeconfig)

    def output(self, *arguments: str) -> str:
        return self.run(*arguments).stdout

    def submit(self, directory: Path, job: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        file = directory / f"{job['metadata']['name']}.yaml"
        file.write_text(yaml.safe_dump(job))
        return self.run("run", "--no-follow", "-f", str(file))


@pytest.mark.parametrize("manager", [FORMER, TREE])
@pytest.mark.parametrize("definitions", [FORMER, TREE])
def test_combination(
    empty_cluster: Cluster, versions: dict[str, Version], definitions: str, manager: str, tmp_path: Path
) -> None:
    """Every command of both versions does on it what it is for."""
    with installed(empty_cluster, versions[definitions], versions[manager], tmp_path):
        for command in (FORMER, TREE):
            with empty_cluster.in_namespace() as cluster:
                use(Command(versions[command], cluster), tmp_path)


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
    assert trainer.output("logs", "done") == "hello\n"
    assert "it trains" in trainer.output("logs", "kept")
    listed = trainer.output("get")
    assert all(each in listed for each in ("Complete", "Running", "Failed"))
    assert "kept" in trainer.output("get", "kept")
    trainer.output("suspend", "kept")
    cluster.wait_for_state("kept", "Suspended")
    until(lambda: not of_job(cluster, "kept"), "its pods are gone")
    trainer.output("resume", "kept")
    cluster.wait_for_state("kept", "Running")
    trainer.output("delete", "kept")
    until(lambda: not of_job(cluster, "kept"), "its pods are gone")


def of_job(cluster: Cluster, name: str) -> list[str]:
    pods = [pod["metadata"] for pod in cluster.list("pods")]
    return [pod["name"] for pod in pods if pod["labels"].get("jobset.sigs.k8s.io/jobset-name") == name]


def test_field_that_the_definitions_lack(empty_cluster: Cluster, versions: dict[str, Version], tmp_path: Path) -> None:
    """The command of the tree says which field is dropped, and that the definitions are older."""
    former, tree = versions[FORMER], versions[TREE]
    with installed(empty_cluster, former, tree, tmp_path), empty_cluster.in_namespace() as cluster:
        trainer = Command(tree, cluster)
        submitted = trainer.submit(tmp_path, train_job("job", "print('hello')", maxRestarts=3))
        assert 'unknown field "spec.maxRestarts"' in submitted.stderr
        assert "the CRDs of this cluster do not have it; if they are older" in submitted.stderr
        cluster.wait_for_state("job", "Complete")
        assert "job has succeeded" in trainer.output("explain", "job")
