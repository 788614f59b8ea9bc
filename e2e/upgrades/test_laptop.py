"""The cluster of `trainer up` under packages that pip upgrades and downgrades while trainings run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import trainer
from e2e import audit
from e2e.cluster import train_job
from e2e.home import Home
from e2e.upgrades.environment import Environment
from e2e.upgrades.released import ROOT, released
from e2e.upgrades.wheels import build_wheels
from e2e.waiting import until

TREE = trainer.__version__
SLEEP = "import time; print('it trains', flush=True); time.sleep(600)"
pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tree."""
    return build_wheels(ROOT, tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def environment(tmp_path: Path, wheels: Path) -> Environment:
    """An environment with the release and its dev cluster."""
    release = released()
    return Environment(release.install(tmp_path / "environment", "cluster"), release, wheels)


@pytest.fixture
def home(environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A user whose cluster has an audit log of its own: e2e/test_rbac.py knows the roles of the tree."""
    monkeypatch.setenv(audit.VARIABLE, str(tmp_path / "audit.log"))
    own = environment.home(tmp_path / "state")
    yield own
    environment.install(f"trainer-operator[cluster]=={TREE}", tree=True)
    own.end()


def succeed(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def submit(home: Home, name: str, script: str, **spec: Any) -> None:
    home.kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(train_job(name, script, **spec)))


def states(home: Home) -> dict[str, str]:
    """Of all TrainJobs."""
    jobs = home.kubectl.list("trainjobs")
    return {job["metadata"]["name"]: (job.get("status") or {}).get("state", "") for job in jobs}


def reach(home: Home, **expected: str) -> None:
    """Wait until TrainJobs are in these states, which are written as `name=State`."""
    until(lambda: expected.items() <= states(home).items(), lambda: f"{states(home)} become {expected}", timeout=90)


def pods(home: Home) -> dict[str, tuple[str, str]]:
    """Uid and phase of all pods."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["phase"]) for pod in home.kubectl.list("pods")
    }


def test_there_and_back_and_there(environment: Environment, home: Home) -> None:
    """Trainings of one version are there in the other, in both directions, and none ends by `pip install`."""
    succeed(home.trainer("up"))
    submit(home, "done", "print('hello of the past')")
    submit(home, "failed", "raise ValueError('no data')")
    submit(home, "kept", SLEEP)
    submit(home, "suspended", "print('resumed')", suspend=True)
    reach(home, done="Complete", failed="Failed", kept="Running", suspended="Suspended")
    before, processes = pods(home), home.pids()

    environment.install(f"trainer-operator[cluster,dashboard]=={TREE}", tree=True)
    look_at_the_release(home, processes["cluster"])
    replace_the_manager(home, processes)
    assert pods(home) == before
    assert states(home) == {"done": "Complete", "failed": "Failed", "kept": "Running", "suspended": "Suspended"}
    replace_the_cluster(home)

    go_back_under_a_training(environment, home)
    start_the_release_again(home)

    environment.install(f"trainer-operator[cluster,dashboard]=={TREE}", tree=True)
    succeed(home.trainer("up"))
    assert succeed(home.trainer("logs", "back")) == "hello of yesterday\n"
    assert succeed(home.trainer("logs", "done")) == "hello of the past\n"
    submit(home, "last", "print('hello')")
    reach(home, last="Complete", back="Complete", done="Complete", new="Complete", failed="Failed")


def look_at_the_release(home: Home, cluster: int) -> None:
    """The commands of the tree read what the processes of the release, which go on, have trained."""
    status = home.trainer("status")
    assert f"cluster      running, pid {cluster}," in succeed(status)
    assert status.stdout.count(", started by trainer 0.1") == 2
    assert "new ones may fail; trainer down and trainer up start it anew" in status.stderr
    assert re.search(r"^TrainJobs +4 \(1 Complete, 1 Failed, 1 Running, 1 Suspended\)$", status.stdout, re.MULTILINE)
    assert re.search(r"^kept +Running", succeed(home.trainer("get")), re.MULTILINE)
    assert succeed(home.trainer("logs", "done")) == "hello of the past\n"
    assert "kept is running" in succeed(home.trainer("explain", "kept"))


def replace_the_manager(home: Home, processes: Mapping[str, int]) -> None:
    """`trainer up` of the tree leaves a cluster of the release alone on which something is trained."""
    up = home.trainer("up")
    assert "the manager was started by trainer 0.1; starting it again\n" in succeed(up)
    assert "the cluster was started by trainer 0.1, and is not stopped: it trains default/kept (Running)" in up.stderr
    assert home.pids()["cluster"] == processes["cluster"]
    assert home.pids()["manager"] != processes["manager"]


def replace_the_cluster(home: Home) -> None:
    """Once nothing is trained, the next `trainer up` is the upgrade; what the release has trained is there."""
    succeed(home.trainer("delete", "kept"))
    assert "the cluster was started by trainer 0.1; starting it again\n" in succeed(home.trainer("up"))
    assert succeed(home.trainer("logs", "done")) == "hello of the past\n"
    assert "ValueError: no data" in succeed(home.trainer("logs", "failed"))
    succeed(home.trainer("resume", "suspended"))
    submit(home, "new", "print('hello of today')")
    submit(home, "kept", SLEEP)
    reach(home, suspended="Complete", new="Complete", kept="Running", done="Complete", failed="Failed")
    until(lambda: "new" in home.trainer("get", "--history").stdout, "it is recorded")


def go_back_under_a_training(environment: Environment, home: Home) -> None:
    """pip brings the release back, and what runs goes on: pods that start wait, and say for what."""
    version = environment.release.version
    conflicts = environment.install(
        f"trainer-operator[cluster]=={version}", f"trainer-devcluster=={version}", tree=False
    )
    assert f"trainer-dashboard {TREE} requires trainer-operator" in conflicts
    assert re.search(r"^kept +Running", succeed(home.trainer("get")), re.MULTILINE)
    submit(home, "waits", "print('it waited')")
    told = f"the dev cluster is trainer-devcluster {TREE}, and what is installed is trainer-devcluster {version}"
    until(lambda: told in home.kubectl.kubectl("get", "events").stdout, "an event says what is wrong")
    assert states(home)["waits"] != "Failed"


def start_the_release_again(home: Home) -> None:
    """Its cluster has what the tree has trained, and trains what waited."""
    succeed(home.trainer("down"))
    up = home.trainer("up")
    assert "the spec of a runtime is immutable" in up.stderr, "docs/devcluster.md says that it does"
    reach(home, waits="Complete", done="Complete", new="Complete", suspended="Complete")
    assert succeed(home.trainer("logs", "new")) == "hello of today\n"
    submit(home, "back", "print('hello of yesterday')")
    reach(home, back="Complete")


def test_packages_of_two_releases(environment: Environment, home: Home) -> None:
    """pip refuses to install them together; where it was made to, commands say which one is to be replaced."""
    version = environment.release.version
    asked = environment.pip("--dry-run", f"trainer-dashboard=={TREE}", f"trainer-operator=={version}", tree=True)
    assert asked.returncode != 0
    assert "ResolutionImpossible" in asked.stderr or "conflicting dependencies" in asked.stderr

    environment.install(f"trainer-operator=={TREE}", tree=True)
    up = home.trainer("up")
    assert up.returncode == 2
    major, minor = TREE.split(".")[:2]
    remedy = f"pip install 'trainer-devcluster>={major}.{minor},<{major}.{int(minor) + 1}'"
    assert up.stderr.strip() == f"error: trainer-devcluster {version} does not fit trainer-operator {TREE}: {remedy}"
    assert "kind: CustomResourceDefinition" in succeed(home.trainer("crds"))
