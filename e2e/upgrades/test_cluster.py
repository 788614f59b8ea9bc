"""A cluster is upgraded from the last release to the tree, and taken back, while trainings run on it.

Each fixture is a stage that all tests after it find: the release, the tree, and the release again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from e2e import audit
from e2e.dashboard_server import DashboardServer, running_dashboard_server
from e2e.dev_cluster import dev_cluster
from e2e.gang_schedulers import COSCHEDULING
from e2e.gang_schedulers import install as install_scheduler
from e2e.identity import token_of
from e2e.upgrades.changes import HASHES, OURS, Writes, changes, unexpected
from e2e.upgrades.recorder import Recorder, running_recorder
from e2e.upgrades.released import released
from e2e.upgrades.trainings import ENDED, GANG, RUNNING, SUSPENDED, TORCH, Object, Trainings
from e2e.upgrades.versions import Site, Version
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.timeout(400),
]
OPTIONS = ("--feature-gates", "ElasticJobSet=true")
READ: Object = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
ENDS = rf"(HorizontalPodAutoscaler/scaled|PodGroup/paused-gang){OURS}(lives-on|delete-when-finished): "
RESTARTS = r"TrainJob/retried\.status\.restarts: "
"""A field that 0.1.0 does not know."""
STOPPING = r"TrainJob/stopping\.status\."
WRITES = (
    r"patch (jobsets|podgroups) (waiting|paused|stopping)[a-z-]*$",
    r"patch horizontalpodautoscalers scaled$",
    r"patch trainjobs/status (retried|stopping)$",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """What a version has found, and what it has made of that before anybody asked it for anything."""

    site: Site
    trainings: Trainings
    writes: Writes
    version: Version
    before: dict[str, Object]
    installed: dict[str, Object]
    """After its definitions, roles and webhooks were applied, under the manager of before."""
    after: dict[str, Object]
    """After its manager has taken over."""
    written: dict[str, int]
    refused: list[str]
    """Runtimes of this version that the cluster refuses, since there are others of their names."""


@pytest.fixture(scope="module")
def stack() -> Iterator[ExitStack]:
    """What runs until the end."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def begun(stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Trainings, Writes]:
    """The release on a cluster with trainings, and an audit log of its own: e2e/test_rbac.py knows the tree's roles."""
    directory = tmp_path_factory.mktemp("upgrade")
    log = directory / "audit.log"
    cluster = stack.enter_context(dev_cluster(directory, *OPTIONS, environment={audit.VARIABLE: str(log)}))
    cluster.require_pod_networks()
    install_scheduler(cluster, COSCHEDULING)
    site, version = Site(cluster, directory), Version.of(released())
    stack.callback(site.close)
    site.apply(version)
    site.roll_out(version)
    assert site.apply_runtimes(version) == []
    team = stack.enter_context(cluster.in_namespace("team", waits=False))
    (directory / "files").mkdir()
    trainings, writes = Trainings(team, directory / "files"), Writes(log, "team")
    trainings.begin()
    writes.settled()
    return site, trainings, writes


def replaced(site: Site, trainings: Trainings, writes: Writes, version: Version, window: str) -> Stage:
    """Put another version in the place of the one that runs: manifests, manager, runtimes.

    A TrainJob `window` is trained by the old manager on the new definitions.
    """
    before = trainings.stored()
    site.apply(version)
    assert writes.settled() == {}
    installed = trainings.stored()
    trainings.cluster.apply(trainings.short(window))
    trainings.cluster.complete(window)
    writes.settled()
    site.roll_out(version)
    written = writes.settled()
    after = trainings.stored()
    return Stage(site, trainings, writes, version, before, installed, after, written, site.apply_runtimes(version))


@pytest.fixture(scope="module")
def upgraded(begun: tuple[Site, Trainings, Writes]) -> Stage:
    """The tree."""
    return replaced(*begun, Version.tree(), "between")


@pytest.fixture(scope="module")
def watched(upgraded: Stage, stack: ExitStack) -> tuple[Recorder, DashboardServer, str]:
    """The history and the dashboard of the tree, which 0.1.0 has not, and a token for the latter."""
    directory, cluster = upgraded.site.directory / "watched", upgraded.trainings.cluster
    directory.mkdir()
    recorder = stack.enter_context(running_recorder(cluster, directory))
    dashboard = stack.enter_context(running_dashboard_server(cluster, directory))
    return recorder, dashboard, token_of(cluster, "reader", READ)


def test_the_upgrade_changes_nothing(upgraded: Stage) -> None:
    """Pods, JobSets and statuses are the same; a manager writes each object once at most, and few of them."""
    assert changes(upgraded.before, upgraded.installed) == set()
    assert unexpected(changes(upgraded.before, upgraded.after), HASHES, ENDS, RESTARTS) == []
    assert unexpected(upgraded.written, *WRITES) == []
    assert set(upgraded.written.values()) == {1}


def test_runtimes_are_renewed(upgraded: Stage) -> None:
    """The Job replaces those of before, and no training that was built on them changes."""
    assert upgraded.refused == []
    assert upgraded.writes.settled() == {}
    assert changes(upgraded.after, upgraded.trainings.stored()) == set()


def test_what_waited_runs(upgraded: Stage) -> None:
    """Trainings that have never run, have run, or get another size meanwhile."""
    patch = '{"spec": {"trainer": {"numNodes": 1}}}'
    upgraded.trainings.cluster.kubectl("patch", "trainjob", "paused", "--type=merge", "-p", patch)
    upgraded.trainings.resume("waiting", "waiting-mpi", "paused")
    assert len([name for name in upgraded.trainings.own("paused") if name.startswith("Pod/")]) == 1


def test_an_elastic_training_grows(upgraded: Stage) -> None:
    """Its first node goes on."""
    trainings = upgraded.trainings
    first = {name for name in trainings.own("elastic") if name.startswith("Pod/")}
    trainings.cluster.kubectl("scale", "trainjob/elastic", "--replicas=2")
    until(lambda: first < {name for name in trainings.own("elastic") if name.startswith("Pod/")}, "a second node")


def test_the_end(upgraded: Stage) -> None:
    """A gang of the release completes, and its PodGroup goes."""
    upgraded.trainings.finish("ending")
    until(lambda: not upgraded.trainings.own("ending") & {"PodGroup/ending"}, "its PodGroup is gone")


def test_deletion(upgraded: Stage) -> None:
    """A training of the release goes with all of its own."""
    delete(upgraded.trainings, "doomed")


def test_history_and_dashboard(watched: tuple[Recorder, DashboardServer, str], upgraded: Stage) -> None:
    """They are added, and know what the release has trained."""
    recorder, dashboard, token = watched
    names = {*RUNNING, *ENDED, *SUSPENDED}
    until(lambda: recorder.states().keys() >= names, lambda: f"all are recorded: {recorder.states()}")
    assert {name: recorder.states()[name] for name in ENDED} == ENDED
    shows(dashboard, token, names)


@pytest.fixture(scope="module")
def reverted(upgraded: Stage, watched: tuple[Recorder, DashboardServer, str]) -> Stage:
    """The release again, with trainings that the tree has built; one is being suspended and has not ended yet."""
    trainings = upgraded.trainings
    trainings.cluster.apply(
        trainings.short("new"),
        trainings.train_job("torch-of-new", runtime=TORCH, nodes=2),
        trainings.train_job("gang-of-new", runtime=GANG, nodes=2),
        trainings.train_job("waiting-of-new", runtime=TORCH, nodes=2, suspend=True),
        trainings.train_job("doomed-of-new", runtime=GANG),
        trainings.stubborn("stopping"),
    )
    trainings.cluster.complete("new")
    for name in ("torch-of-new", "gang-of-new", "doomed-of-new", "stopping"):
        trainings.wait_for_progress(name)
    trainings.cluster.wait_for_state("waiting-of-new", "Suspended")
    trainings.cluster.suspend("stopping")
    trainings.cluster.wait_for_state("stopping", "Stopping")
    upgraded.writes.settled()
    version = Version.of(released())
    return replaced(upgraded.site, trainings, upgraded.writes, version, "between-again")


def test_the_way_back_changes_nothing(reverted: Stage) -> None:
    """The same as on the way there; what 0.1.0 does not know of a status is not shown any more."""
    assert unexpected(changes(reverted.before, reverted.installed), RESTARTS, STOPPING) == []
    assert unexpected(changes(reverted.before, reverted.after), HASHES, ENDS, RESTARTS, STOPPING) == []
    assert unexpected(reverted.written, *WRITES) == []


def test_runtimes_of_before(reverted: Stage) -> None:
    """They take the place of the newer ones, which are deleted as docs/install.md says, and no training changes."""
    before = reverted.trainings.stored()
    assert reverted.refused
    reverted.site.cluster.kubectl("delete", "clustertrainingruntimes", *reverted.refused)
    assert reverted.site.apply_runtimes(reverted.version) == []
    assert reverted.writes.settled() == {}
    assert changes(before, reverted.trainings.stored()) == set()


def test_the_release_goes_on(reverted: Stage) -> None:
    """What the tree has built or suspended runs, ends and is deleted as what the release has."""
    trainings, cluster = reverted.trainings, reverted.trainings.cluster
    cluster.apply(trainings.short("newest", runtime=TORCH))
    cluster.complete("newest")
    delete(trainings, "doomed-of-new")
    # 0.1.0 reads no TrainJob whose state it does not know.
    patch = '{"status": {"state": "Suspended"}}'
    cluster.kubectl("patch", "trainjob", "stopping", "--subresource=status", "--type=merge", "-p", patch)
    (trainings.folder / "stopping").touch()
    until(lambda: not [each for each in trainings.own("stopping") if each.startswith("Pod/")], "its pod has ended")
    cluster.wait_for_state("stopping", "Suspended")
    cluster.suspend("stopping", False)
    trainings.resume("paused-gang", "waiting-of-new")
    resumed = ("waiting", "waiting-mpi", "paused", "paused-gang", "waiting-of-new")
    trainings.finish(*RUNNING, *resumed, "torch-of-new", "gang-of-new", "stopping")
    for name in ("waiting-still", "paused-still"):
        assert cluster.state(name) == "Suspended"


def test_history_and_dashboard_stay(reverted: Stage, watched: tuple[Recorder, DashboardServer, str]) -> None:
    """They go on beside the release: all that has ended is recorded as it ended, also what is gone."""
    recorder, dashboard, token = watched
    jobs = {job["metadata"]["name"]: job["status"]["state"] for job in reverted.trainings.cluster.list("trainjobs")}
    until(lambda: recorder.states().items() >= jobs.items(), lambda: f"{recorder.states()}, not {jobs}")
    assert "doomed-of-new" in recorder.deleted()
    shows(dashboard, token, jobs)


def test_nobody_was_warned(reverted: Stage) -> None:
    """Only trainings that have failed or wait have warnings, and no manager has had an error."""
    events = reverted.trainings.cluster.list("events")
    warned = [
        (each["involvedObject"]["name"], each["message"])
        for each in events
        if each["type"] == "Warning" and each["involvedObject"]["kind"] == "TrainJob"
    ]
    assert [each for each in warned if each[0] not in {"broken", "pending", "retried", "stopping"}] == []
    for manager in reverted.site.managers:
        lines = [line for line in manager.output().splitlines() if '"level": "error"' in line or "Traceback" in line]
        assert [line for line in lines if "TrainJob stopping does not fit its schema" not in line] == []


def delete(trainings: Trainings, name: str) -> None:
    """Delete a TrainJob, and wait until nothing of it is there."""
    assert trainings.own(name)
    trainings.cluster.kubectl("delete", "trainjob", name, "--timeout=60s")
    until(lambda: not trainings.own(name), lambda: f"nothing of {name} is there: {trainings.own(name)}")


def shows(dashboard: DashboardServer, token: str, names: Iterable[str]) -> None:
    """The dashboard has a page of each of these TrainJobs."""
    assert dashboard.status("GET", "/api/cluster", token) == 200
    for name in names:
        assert dashboard.status("GET", f"/api/trainjobs/team/{name}/yaml", token) == 200
