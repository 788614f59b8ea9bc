"""What a tenant does in one namespace costs the others nothing of their history."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.kubectl import BIN
from e2e.processes import Process
from e2e.replicas import BRIEF, Replicas, fake_job
from e2e.waiting import until

pytestmark = pytest.mark.timeout(300)
TENANT = "e2e-history-attacker"


@pytest.fixture
def tenant(replicas: Replicas) -> Iterator[Cluster]:
    """A namespace beside that of the test."""
    cluster = replace(replicas.cluster, namespace=TENANT)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})
    yield cluster
    cluster.kubectl("delete", "trainjobs", "--all")
    cluster.kubectl("delete", "namespace", TENANT, "--timeout=90s")


@dataclass(frozen=True)
class Recorder:
    """A recorder of all namespaces with a database of its own."""

    process: Process
    directory: Path

    def list(self, namespace: str = "") -> list[dict[str, Any]]:
        """What the history has of a namespace, or of all."""
        command = [str(BIN / "trainer"), "history", "list", "-o", "json", "-n", namespace]
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        answer = subprocess.run(
            command,
            env=environment | self.process.environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        found: list[dict[str, Any]] = json.loads(answer.stdout) if answer.returncode == 0 else []
        return found

    def names(self, namespace: str) -> set[str]:
        """The TrainJobs that have ended there, or that are recorded."""
        return {record["name"] for record in self.list(namespace)}


@contextmanager
def recording(cluster: Cluster, directory: Path, *options: str) -> Iterator[Recorder]:
    command = [str(BIN / "trainer"), "history", "record", "--kubeconfig", str(cluster.kubeconfig), *options]
    process = Process(command, directory / "recorder.log", {"XDG_STATE_HOME": str(directory / "state")})
    process.start(ready="started recorder")
    try:
        yield Recorder(process, directory)
    finally:
        process.stop()


def with_names(job: dict[str, Any], name: str) -> dict[str, Any]:
    """A suspended TrainJob that names a ConfigMap, and a gang in an annotation of its pods, by this text."""
    volume = {"name": "v", "configMap": {"name": name}}
    metadata = {"annotations": {"scheduling.k8s.io/group-name": name}}
    override = {"targetJobs": [{"name": "node"}], "volumes": [volume], "metadata": metadata}
    return job | {"spec": job["spec"] | {"suspend": True, "podSpecOverrides": [override]}}


def test_names_that_no_object_has(replicas: Replicas, tenant: Cluster, tmp_path: Path) -> None:
    """The recorder lives, records these TrainJobs and the others, also after a restart."""
    mine = replicas.cluster
    names = ("a/b", "..", "a%2fb", "a?b", "x y", "\u00e4")
    with recording(mine, tmp_path) as recorder:
        tenant.apply(*(with_names(fake_job(f"bad-{number}", BRIEF), name) for number, name in enumerate(names)))
        until(lambda: len(tenant.list("jobsets")) == len(names), "the JobSets are made")
        mine.apply(fake_job("mine", BRIEF))
        mine.wait_for_state("mine", "Complete")
        until(lambda: [each["state"] for each in recorder.list(mine.namespace)] == ["Complete"], "mine is recorded")
        until(lambda: len(recorder.names(TENANT)) == len(names), lambda: f"{recorder.list(TENANT)}")
        assert recorder.process.exit_code() is None
        recorder.process.stop()
        recorder.process.start(ready="started recorder")
        mine.apply(fake_job("next", BRIEF))
        until(lambda: recorder.names(mine.namespace) == {"mine", "next"}, "what comes after a restart is recorded")
        assert recorder.process.exit_code() is None
        assert "Traceback" not in recorder.process.output()
    for number, _ in enumerate(names):
        explained = tenant.trainer("explain", f"bad-{number}", "-o", "json")
        assert json.loads(explained.stdout)["verdict"] == "waiting", explained.stderr


def of_size(job: dict[str, Any], size: int) -> dict[str, Any]:
    """A suspended TrainJob with a variable of so many characters, which cannot be compressed."""
    job["spec"]["suspend"] = True
    job["spec"]["trainer"] = {"env": [{"name": "BALLAST", "value": secrets.token_hex(size // 2)}]}
    return job


def test_suspended_trainings_of_another_namespace(replicas: Replicas, tenant: Cluster, tmp_path: Path) -> None:
    """They take more room than there is in all, and evict nothing of the others, which is said."""
    mine = replicas.cluster
    finished = {f"mine-{number}" for number in range(8)}
    with recording(mine, tmp_path, "--retain-size", "256Ki") as recorder:
        mine.apply(*(fake_job(name, BRIEF) for name in finished))
        for name in finished:
            mine.wait_for_state(name, "Complete")
        for number in range(8):
            tenant.apply(of_size(fake_job(f"theirs-{number}", BRIEF), 100_000))
        until(lambda: len(recorder.list()) == 16, lambda: f"{recorder.list()}")
        until(lambda: {each["state"] for each in recorder.list(mine.namespace)} == {"Complete"}, "mine have ended")
        mine.kubectl("delete", "trainjobs", "--all")
        until(lambda: all(each["deleted"] for each in recorder.list(mine.namespace)), "mine are gone from the cluster")
        recorder.process.stop()
        # It looks for what is to be forgotten at its start, and then each hour.
        recorder.process.start(ready="history is larger than it may be")
        assert TENANT in recorder.process.output()
        assert recorder.names(mine.namespace) == finished


def test_file_that_is_overwritten(replicas: Replicas, tmp_path: Path) -> None:
    """The recorder ends within seconds, also while it has nothing to write, and says what to do."""
    with recording(replicas.cluster, tmp_path) as recorder:
        [file] = (tmp_path / "state").rglob("history.db")
        with file.open("r+b") as opened:
            opened.write(secrets.token_bytes(file.stat().st_size))
        assert recorder.process.wait(timeout=20) == 1
        said = " ".join(recorder.process.output().split())
        assert "was deleted, replaced or overwritten while it was recorded to; put a backup in its place" in said
        assert "Traceback" not in said
