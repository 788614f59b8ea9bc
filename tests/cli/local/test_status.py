"""`trainer status`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import train_job
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.cli.local import status
from trainer.kube.errors import ForbiddenError, TransportError
from trainer.kube.resource import Resource
from trainer.kube.rest.connection import ConnectionOptions
from trainer.plugins import coscheduling, volcano
from trainer.plugins.workload.versions import V1ALPHA2, V1BETA1
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

SCHEDULING_GROUP = "spec.replicatedJobs.template.spec.template.spec.schedulingGroup"
BETA = (V1BETA1.pod_groups, V1BETA1.workloads)
ALPHA = (V1ALPHA2.pod_groups, V1ALPHA2.workloads)


@pytest.fixture
def opened(served: FakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ConnectionOptions]:
    """How the cluster `served` was reached; the user has none of `trainer up`."""
    seen: list[ConnectionOptions] = []

    @asynccontextmanager
    async def connect(options: ConnectionOptions) -> AsyncIterator[FakeClient]:
        seen.append(options)
        yield served

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(status, "connect", connect)
    return seen


def run(*arguments: str) -> tuple[int, dict[str, str], str]:
    """Exit code, lines by label, and standard error."""
    result = CliRunner().invoke(app, ["status", *arguments])
    lines = dict(line.split(None, 1) for line in result.stdout.splitlines())
    return result.exit_code, lines, result.stderr


@pytest.mark.parametrize(
    ("served_kinds", "closed", "text"),
    [
        pytest.param((), {}, "Workload API no, coscheduling no, Volcano no", id="nothing"),
        pytest.param(
            (volcano.POD_GROUPS, coscheduling.POD_GROUPS),
            {},
            "Workload API no, coscheduling yes, Volcano yes",
            id="schedulers that are installed",
        ),
        pytest.param(
            (*BETA, *ALPHA), {}, "Workload API v1beta1, coscheduling no, Volcano no", id="two versions: the newer"
        ),
        pytest.param(ALPHA, {}, "Workload API v1alpha2, coscheduling no, Volcano no", id="Kubernetes 1.36"),
        pytest.param(BETA[:1], {}, "Workload API no, coscheduling no, Volcano no", id="half of the Workload API"),
        pytest.param(
            (*BETA, volcano.POD_GROUPS),
            {"spec.schedulingConstraints": False, "spec.resourceClaims": True},
            "Workload API v1beta1 (topologyKey: needs TopologyAwareWorkloadScheduling; "
            "resourceClaims: needs DRAWorkloadResourceClaims), coscheduling no, Volcano yes",
            id="gates that are off",
        ),
        pytest.param(
            ALPHA,
            {"spec.disruptionMode": False, "spec.priorityClassName": False},
            "Workload API v1alpha2 (disruptionMode: needs WorkloadAwarePreemption), coscheduling no, Volcano no",
            id="gates of Kubernetes 1.36",
        ),
    ],
)
@pytest.mark.usefixtures("opened")
def test_gangs(served: FakeClient, served_kinds: tuple[Resource, ...], closed: dict[str, bool], text: str) -> None:
    """What is served, and what of it feature gates refuse; nothing is stored."""
    for kind in served_kinds:
        served.serve(kind)
        for field, drops in closed.items():
            served.close_gate(kind, field, drops=drops)
    code, lines, _ = run("--context", "of-the-test")
    assert (code, lines["gangs"]) == (0, text)
    assert all(request.dry_run for request in served.requests if request.verb not in {"list", "get"})


@pytest.mark.usefixtures("opened")
def test_gangs_of_an_old_jobset(served: FakeClient) -> None:
    """A JobSet that forgets the group of its pods makes no gangs."""
    for kind in BETA:
        served.serve(kind)
    served.close_gate(JOBSETS, SCHEDULING_GROUP, drops=True)
    _, lines, _ = run("--context", "of-the-test")
    assert lines["gangs"].startswith("Workload API v1beta1 (needs JobSet v0.12 or later), ")


@pytest.mark.usefixtures("opened")
def test_before_anything_is_installed(served: FakeClient) -> None:
    """A cluster tells what it offers for gangs before the CRDs of TrainJobs and JobSets are there."""
    for kind in BETA:
        served.serve(kind)
    served.close_gate(V1BETA1.pod_groups, "spec.resourceClaims", drops=True)
    for kind in (JOBSETS, TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        served.withdraw(kind)
    code, lines, _ = run("--context", "of-the-test")
    assert code == 0
    assert {lines[label] for label in ("API", "runtimes", "TrainJobs")} == {"none: the CRDs are not installed"}
    text = "needs JobSet v0.12 or later; resourceClaims: needs DRAWorkloadResourceClaims"
    assert lines["gangs"] == f"Workload API v1beta1 ({text}), coscheduling no, Volcano no"


@pytest.mark.usefixtures("opened")
def test_what_the_user_may_not_try(served: FakeClient) -> None:
    """What the other dry runs have said is shown nevertheless."""
    for kind in BETA:
        served.serve(kind)
    served.close_gate(V1BETA1.pod_groups, "spec.resourceClaims", drops=True)
    served.faults.fail(ForbiddenError(403, "no right"), verb="create", resource=JOBSETS)
    _, lines, _ = run("--context", "of-the-test")
    text = "resourceClaims: needs DRAWorkloadResourceClaims; what feature gates refuse is unknown: no right"
    assert lines["gangs"] == f"Workload API v1beta1 ({text}), coscheduling no, Volcano no"


@pytest.mark.usefixtures("opened")
def test_what_the_user_may_not_see(served: FakeClient) -> None:
    """It is said to be unknown; the rest is shown."""
    for kind in BETA:
        served.serve(kind)
    served.faults.fail(ForbiddenError(403, "no right"), resource=TRAIN_JOBS)
    served.faults.fail(ForbiddenError(403, "cannot create"), verb="create", times=None)
    code, lines, _ = run("--context", "of-the-test")
    assert code == 0
    assert lines["TrainJobs"] == "unknown: no right"
    assert lines["runtimes"] == "none"
    text = "Workload API v1beta1 (what feature gates refuse is unknown: cannot create), coscheduling no, Volcano no"
    assert lines["gangs"] == text


@pytest.mark.parametrize(
    ("arguments", "environment", "kubeconfig", "context"),
    [
        pytest.param(("--kubeconfig", "FILE"), "", "FILE", None, id="file"),
        pytest.param(("--kubeconfig", "FILE", "--context", "c"), "", "FILE", "c", id="file and context"),
        pytest.param(("--context", "c"), "", None, "c", id="context that is none of trainer up"),
        pytest.param((), "FILE", None, None, id="environment"),
    ],
)
def test_any_cluster(
    served: FakeClient,
    opened: list[ConnectionOptions],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    environment: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """It is the cluster of other commands; no processes are shown, which others run."""
    file = tmp_path / "config"
    file.touch()
    if environment:
        monkeypatch.setenv("KUBECONFIG", str(file))
    served.add(train_job("demo", state="Running"))
    code, lines, errors = run(*(str(file) if each == "FILE" else each for each in arguments))
    assert (code, errors) == (0, "")
    assert lines == {
        "cluster": "https://cluster.test",
        "context": "of-the-test",
        "API": "trainer.kubeflow.org/v2alpha1",
        "runtimes": "none",
        "TrainJobs": "1 (1 Running)",
        "gangs": "Workload API no, coscheduling no, Volcano no",
    }
    assert [(each.kubeconfig, each.context) for each in opened] == [(kubeconfig and file, context)]


def test_without_a_cluster(opened: list[ConnectionOptions]) -> None:
    """It is the one of `trainer up`, which does not run."""
    code, lines, _ = run()
    assert code == 1
    assert lines == {"cluster": "not running; trainer up starts it", "manager": "not running; trainer up starts it"}
    assert opened == []


def test_the_kubeconfig_of_trainer_up(
    opened: list[ConnectionOptions], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However its path is written, it is that of the dev cluster."""
    (tmp_path / "link").symlink_to(tmp_path / "state", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "state/trainer/kubeconfig", "state/trainer/kubeconfig", "link/trainer/kubeconfig"):
        monkeypatch.setenv("KUBECONFIG", str(path))
        code, lines, _ = run()
        assert (code, lines["manager"]) == (1, "not running; trainer up starts it")
    assert opened == []


@pytest.mark.usefixtures("opened")
def test_a_cluster_that_does_not_answer(served: FakeClient) -> None:
    """The error says so."""
    served.faults.fail(TransportError("connection refused"), resource=CLUSTER_TRAINING_RUNTIMES)
    code, _, errors = run("--context", "of-the-test")
    assert (code, errors) == (1, "error: cannot reach the cluster: connection refused\n")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--all", "--name", "a"), id="all and a name"),
        pytest.param(("--all", "--context", "a"), id="all and a context"),
        pytest.param(("--name", "a", "--kubeconfig", "f"), id="a name and a file"),
    ],
)
@pytest.mark.usefixtures("opened")
def test_bad_input(arguments: tuple[str, ...]) -> None:
    """One cluster is shown, or all of `trainer up`."""
    code, _, errors = run(*arguments)
    assert code == 2
    assert "cannot be combined" in errors
