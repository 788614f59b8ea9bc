"""Progress of trainings, from what they print to what `kubectl get trainjob` shows (KEP-2779)."""

from __future__ import annotations

import re
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from e2e.cut_connections import cuttable
from e2e.debian_packages import needs
from e2e.manager import Manager, other_ports
from e2e.manager import manager as make_manager
from e2e.progress_training import container, gate, gated, own_runtime, replicated_job, script, training
from e2e.progress_view import SECONDS, condition, events, progress, rows, wait_for_progress, watched_percentages
from e2e.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from e2e.cluster import Cluster

INTERVAL = 0.2
"""Seconds between two writes of one status: a small one, so that every report of these trainings can be seen."""
CONFIGURATION: dict[str, Any] = {
    "progress": {"statusInterval": f"{INTERVAL}s", "readInterval": "50ms"},
    # One that is killed here has no successor, and would have to wait for its own lease.
    "leaderElection": {"leaderElect": False},
}
MONITORING = "trainer.kubeflow.org/enable-trainer-status-monitoring"
PRIMARY_POD = "trainer.kubeflow.org/trainer-status-primary-pod"
CONTAINER = "trainer.kubeflow.org/trainer-status-container"
STALL_SECONDS = "trainer.kubeflow.org/trainer-status-stall-seconds"
COMPLETE = "Complete"


@pytest.fixture(scope="module")
def manager(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """Our manager instead of that of the session: it writes sooner."""
    session_cluster.manager.stop()
    process = make_manager(session_cluster, tmp_path_factory.mktemp("progress"), **CONFIGURATION)
    try:
        process.start(ready="started manager")
        yield process
    finally:
        process.stop()
        session_cluster.manager.start(ready="started manager")


@pytest.fixture(autouse=True)
def running_manager(manager: Manager) -> None:
    """Every test has it."""


@contextmanager
def killed(manager: Manager) -> Iterator[None]:
    """The manager dies without a word, and is started again at the end."""
    manager.send(signal.SIGKILL)
    manager.wait()
    try:
        yield
    finally:
        manager.start(ready="started manager")


def test_columns(cluster: Cluster) -> None:
    """`kubectl get trainjob` shows state, percentage and ETA in words, and they move with the training."""
    moving = """
    for percentage in range(1, 101, 3):
        say(progressPercentage=percentage, estimatedRemainingSeconds=60 * (100 - percentage))
        time.sleep(0.15)
    """
    cluster.apply(
        training("long", "say(progressPercentage=3, estimatedRemainingSeconds=795649); live_on()"),
        training("moving", moving),
        training("silent", "live_on()"),
    )
    seen: list[list[str]] = []

    def has_ended() -> bool:
        _, table = rows(cluster)
        row = table["moving"][1:4]
        if row[1] and row not in seen:
            seen.append(row)
        return row[:2] == [COMPLETE, "100"]

    until(has_ended, lambda: f"the training is shown from beginning to end: {seen}")

    header, table = rows(cluster)
    assert header.split() == ["NAME", "STATE", "PROGRESS", "%", "ETA", "AGE"]
    assert table["long"][1:4] == ["Running", "3", "9 days 5 hours"]
    assert table["silent"][1:4] == ["Running", "", ""]
    assert re.fullmatch(r"\d+s", table["silent"][4])
    assert table["moving"][1:4] == [COMPLETE, "100", ""]
    percentages = [int(row[1]) for row in seen]
    assert len(percentages) > 1
    assert percentages == sorted(percentages)
    assert any("minutes" in row[2] for row in seen)


def test_all_fields(cluster: Cluster) -> None:
    """Fields arrive as they were printed, metrics digit by digit; the time is that of the line, not of the write."""
    message = (
        '{"progressPercentage": 45, "estimatedRemainingSeconds": 2700, "currentStep": 4500, "totalSteps": 10000, '
        '"currentEpoch": 2, "totalEpochs": 5, "more": [1], "trainMetrics": {"loss": 0.2000, "learning rate": 1e-05}, '
        '"evalMetrics": {"eval_loss": 123456789012345678.90}}'
    )
    cluster.apply(training("demo", f"write(TAG + ' ' + {message!r} + '\\n'); live_on()"))

    found = wait_for_progress(cluster, "demo", progressPercentage=45)

    (line,) = cluster.kubectl("logs", "job/demo-node-0", "--timestamps").stdout.splitlines()
    assert found == {
        "progressPercentage": 45,
        "estimatedRemainingSeconds": 2700,
        "estimatedRemainingTimeSummary": "45 minutes",
        "currentStep": 4500,
        "totalSteps": 10000,
        "currentEpoch": 2,
        "totalEpochs": 5,
        "trainMetrics": {"loss": "0.2000", "learning rate": "1e-05"},
        "evalMetrics": {"eval_loss": "123456789012345678.90"},
        "lastUpdatedTime": line[:19] + "Z",
    }


def test_first_version_of_the_protocol(cluster: Cluster) -> None:
    """The tag and the field name of the KEP's example count as well."""
    cluster.apply(
        training("demo", "write(TAG.replace('v2alpha1', 'v1alpha1') + ' {\"progressPercent\": 45}\\n'); live_on()")
    )

    wait_for_progress(cluster, "demo", progressPercentage=45)


def test_derived_percentage_and_estimate(cluster: Cluster) -> None:
    """Of steps alone come a percentage, and after a while an ETA that says that it is an estimate."""
    cluster.apply(
        training(
            "demo",
            """
            for step in range(1000):
                say(currentStep=step, totalSteps=1000)
                time.sleep(0.1)
            """,
        )
    )

    def estimated() -> dict[str, Any] | None:
        found = progress(cluster, "demo")
        assert found.get("progressPercentage", 0) == found.get("currentStep", 0) * 100 // 1000
        return found if "estimatedRemainingSeconds" in found else None

    found = until(estimated, "an estimate", timeout=SECONDS)
    assert found["estimatedRemainingTimeSummary"].startswith("about ")
    # 100 s by the sleeps alone; a busy machine makes each step longer.
    assert 60 < found["estimatedRemainingSeconds"] < 400


FAST = {
    "python": ["python", "-u", "-c", script("say(progressPercentage=0); time.sleep(1); say(progressPercentage=100)")],
    "shell": [
        "sh",
        "-c",
        "echo '[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] {\"progressPercentage\": 100}'",
    ],
    "no newline": ["python", "-c", script("write(TAG + ' {\"progressPercentage\": 100}')")],
}


@pytest.mark.parametrize("command", [pytest.param(command, id=name) for name, command in FAST.items()])
def test_last_message_of_a_fast_job(cluster: Cluster, command: list[str]) -> None:
    """What a job prints as its last line arrives, however soon it ends."""
    job = training("demo", "")
    job["spec"]["trainer"]["command"] = command
    cluster.apply(job)

    cluster.wait_for_state("demo", COMPLETE)
    wait_for_progress(cluster, "demo", progressPercentage=100)


def test_interval_between_writes(cluster: Cluster, manager: Manager, tmp_path: Path) -> None:
    """By default a status is written every 5 s at most, but the last message does not wait when the job ends."""
    body = """
    for percentage in range(10, 101, 10):
        say(progressPercentage=percentage)
        time.sleep(0.2)
    """
    own = make_manager(cluster, tmp_path, controller={"namespace": cluster.namespace})
    manager.stop()
    try:
        own.start(ready="started controller")
        cluster.apply(training("demo", body))
        with watched_percentages(cluster, "demo", tmp_path) as percentages:
            cluster.wait_for_state("demo", COMPLETE)
            until(lambda: percentages.seen()[-1:] == ["100"], "the last message", timeout=4)
            assert len(percentages.seen()) <= 2
    finally:
        own.stop()
        manager.start(ready="started manager")


def test_many_messages(cluster: Cluster, manager: Manager) -> None:
    """A flood of messages is read to its end, and costs no more writes than there are intervals between them."""
    names = ("trainer_progress_messages_total", "trainer_progress_status_writes_total")
    messages, writes = (manager.series(cluster, name) for name in names)
    began = time.monotonic()
    cluster.apply(training("demo", "for step in range(10_000): say(currentStep=step + 1, totalSteps=10_000)"))

    cluster.wait_for_state("demo", COMPLETE)

    assert wait_for_progress(cluster, "demo", progressPercentage=100)["currentStep"] == 10_000
    assert manager.series(cluster, names[0]) == messages + 10_000
    assert manager.series(cluster, names[1]) - writes < (time.monotonic() - began) / INTERVAL


def test_bad_messages(cluster: Cluster) -> None:
    """Bad values are dropped and reported once per field; good ones count, and so do those of other jobs."""
    cluster.apply(
        training("other", "say(progressPercentage=30); live_on()"),
        training(
            "demo",
            """
            say(progressPercentage=10)
            for number in range(20):
                say(progressPercentage=140 + number, currentStep=number)
            say(trainMetrics={"loss": float("nan"), "lr": 0.5})
            say(progressPercentage=77, name="other", metadata={"name": "other"}, namespace="default", uid="x")
            live_on()
            """,
        ),
    )

    wait_for_progress(cluster, "demo", progressPercentage=77)
    found = until(
        lambda: reported if len(reported := events(cluster, "TrainerStatusRejected")) == 2 else None,
        "events",
        timeout=SECONDS,
    )

    assert {event["type"] for event in found} == {"Warning"}
    assert {event["involvedObject"]["name"] for event in found} == {"demo"}
    messages = " ".join(event["message"] for event in found)
    assert "progressPercentage: Invalid value: 140: must be at most 100" in messages
    assert "trainMetrics[loss]: Invalid value: NaN: must be a finite number" in messages
    assert {(event.get("count") or 1, event.get("series")) for event in found} == {(1, None)}
    shown = wait_for_progress(cluster, "demo", progressPercentage=77)
    assert (shown["currentStep"], shown["trainMetrics"]) == (19, {"lr": "0.5"})
    wait_for_progress(cluster, "other", progressPercentage=30)
    assert len(events(cluster, "TrainerStatusRejected")) == 2


@pytest.mark.parametrize("where", [pytest.param("metadata", id="trainjob"), pytest.param("spec", id="jobset")])
def test_switched_off(cluster: Cluster, where: str) -> None:
    """The annotation on the TrainJob or its JobSet keeps the log from being read."""
    off = training("off", "say(progressPercentage=50); live_on()")
    off[where]["annotations"] = {MONITORING: "false"}
    cluster.apply(off)
    cluster.wait_for_state("off", "Running")
    until(lambda: "50" in cluster.kubectl("logs", "job/off-node-0").stdout, "it has printed")
    if where == "spec":
        jobset = cluster.get("jobset", "off")
        assert jobset is not None
        assert jobset["metadata"]["annotations"][MONITORING] == "false"

    cluster.apply(training("on", "say(progressPercentage=60); live_on()"))

    wait_for_progress(cluster, "on", progressPercentage=60)
    assert progress(cluster, "off") == {}


def test_annotated_pod_and_container(cluster: Cluster) -> None:
    """A pod and a container that say that they are to be read are read instead of the first ones."""
    watcher = replicated_job(
        "watcher",
        [
            container("talker", "say(progressPercentage=22); live_on()"),
            container("reporter", "say(progressPercentage=33); live_on()"),
        ],
        annotations={PRIMARY_POD: "true", CONTAINER: "reporter"},
    )
    runtime = own_runtime(cluster, "mine")
    runtime["spec"]["template"]["spec"]["replicatedJobs"].append(watcher)
    cluster.apply(runtime, training("demo", "say(progressPercentage=11); live_on()", runtime="/mine", nodes=2))

    found = until(lambda: progress(cluster, "demo"), "a report", timeout=SECONDS)
    assert found["progressPercentage"] == 33


@pytest.mark.parametrize("where", [pytest.param("metadata", id="trainjob"), pytest.param("spec", id="jobset")])
def test_container_named_by_the_job(cluster: Cluster, where: str) -> None:
    """The container may be named where the pods are not known."""
    runtime = own_runtime(cluster, "mine")
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["template"]["spec"]["containers"].append(
        container("reporter", "say(progressPercentage=33); live_on()")
    )
    job = training("demo", "say(progressPercentage=11); live_on()", runtime="/mine")
    job[where]["annotations"] = {CONTAINER: "reporter"}
    cluster.apply(runtime, job)

    found = until(lambda: progress(cluster, "demo"), "a report", timeout=SECONDS)
    assert found["progressPercentage"] == 33


def test_initializer(cluster: Cluster) -> None:
    """While data is fetched its progress is in the column, and the training's own comes after it."""
    fetching = """
    for percentage in range(10, 60, 10):
        say(progressPercentage=percentage)
        time.sleep(3)
    """
    runtime = own_runtime(cluster, "mine")
    jobset = runtime["spec"]["template"]["spec"]
    jobset["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    jobset["replicatedJobs"].insert(0, replicated_job("initializer", [container("dataset-initializer", fetching)]))
    cluster.apply(runtime, training("demo", "say(progressPercentage=71); live_on()", runtime="/mine"))

    until(lambda: rows(cluster)[1]["demo"][2] in {"20", "30", "40"}, "the data's progress", timeout=SECONDS)
    assert progress(cluster, "demo") == {}
    wait_for_progress(cluster, "demo", progressPercentage=71)
    assert rows(cluster)[1]["demo"][2] == "71"
    assert "dataset-initializer: Complete" in cluster.trainer("get", "demo").stdout


def test_only_the_first_node(cluster: Cluster) -> None:
    """What other nodes report is not the progress of the training."""
    body = """
    time.sleep(0 if os.environ["JOB_COMPLETION_INDEX"] == "1" else 1)
    say(progressPercentage=20 + int(os.environ["JOB_COMPLETION_INDEX"]))
    live_on()
    """
    cluster.apply(training("demo", body, nodes=2))

    found = until(lambda: progress(cluster, "demo"), "a report", timeout=SECONDS)
    assert found["progressPercentage"] == 20


@needs("openmpi-bin", "openssh-server")
@pytest.mark.timeout(180)
def test_launcher_of_mpi(cluster: Cluster) -> None:
    """Processes of MPI are heard through the log of the launcher, whichever node they run on."""
    if cluster.is_local and not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    body = """
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    if rank == 1:
        say(progressPercentage=64, trainMetrics={"hosts": rank})
    """
    job = training("demo", "", runtime="mpi-openmpi", nodes=2)
    job["spec"]["trainer"]["command"] = ["mpirun", "-x", "PATH", "python", "-c", script(body)]
    cluster.apply(job)

    cluster.wait_for_state("demo", COMPLETE, "Failed", timeout=120)
    assert wait_for_progress(cluster, "demo", progressPercentage=64)["trainMetrics"] == {"hosts": "1"}


SECOND_RUN = "time.sleep(1); say(progressPercentage=5); live_on()"


def restarting_container(cluster: Cluster) -> dict[str, Any]:
    """A job whose container is started again within its pod."""
    runtime = own_runtime(cluster, "mine")
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["backoffLimit"] = 5
    pod_spec = node["template"]["spec"]["template"]["spec"]
    pod_spec["restartPolicy"] = "OnFailure"
    pod_spec["volumes"] = [{"name": "state", "emptyDir": {}}]
    pod_spec["containers"][0]["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    cluster.apply(runtime)
    body = f"""
    if not os.path.exists("/state/ran"):
        open("/state/ran", "w").close()
        say(progressPercentage=60, trainMetrics={{"loss": 0.5}})
        time.sleep(1.5)
        sys.exit(1)
    {SECOND_RUN}
    """
    return training("demo", body, runtime="/mine")


def restarting_jobset(cluster: Cluster) -> dict[str, Any]:
    """A job whose JobSet is made again."""
    runtime = own_runtime(cluster, "mine")
    runtime["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 2}
    cluster.apply(runtime)
    body = f"""
    if os.environ["ATTEMPT"] == "0":
        say(progressPercentage=60, trainMetrics={{"loss": 0.5}})
        time.sleep(1.5)
        sys.exit(1)
    {SECOND_RUN}
    """
    job = training("demo", body, runtime="/mine")
    path = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    job["spec"]["trainer"]["env"] = [{"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    return job


@pytest.mark.parametrize(
    "restarting",
    [pytest.param(restarting_container, id="container"), pytest.param(restarting_jobset, id="jobset")],
)
def test_restart(cluster: Cluster, tmp_path: Path, restarting: Callable[[Cluster], dict[str, Any]]) -> None:
    """What was last reported stays until the new run reports, which then has nothing of the run before."""
    cluster.apply(restarting(cluster))
    with watched_percentages(cluster, "demo", tmp_path) as percentages:
        percentages.wait_for("60", "5")
    assert "trainMetrics" not in progress(cluster, "demo")


def test_replaced_pod(cluster: Cluster, tmp_path: Path) -> None:
    """The pod that comes in place of one that was lost is followed, and counts as a new run."""
    runtime = own_runtime(cluster, "mine")
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["backoffLimit"] = 5
    body = f"""
    if os.environ["RUN"] == "first":
        say(progressPercentage=60, trainMetrics={{"loss": 0.5}})
        live_on()
    {SECOND_RUN}
    """
    cluster.apply(gate("first"), runtime, gated(training("demo", body, runtime="/mine")))
    with watched_percentages(cluster, "demo", tmp_path) as percentages:
        percentages.wait_for("60")
        cluster.apply(gate("second"))
        cluster.kubectl("delete", "pod", "-l", "jobset.sigs.k8s.io/jobset-name=demo", "--wait=false")
        percentages.wait_for("60", "5")
    assert "trainMetrics" not in progress(cluster, "demo")


def test_suspend_and_resume(cluster: Cluster, tmp_path: Path) -> None:
    """A suspended training shows what it reported last, and goes on from what it reports when resumed."""
    body = "say(progressPercentage=40 if os.environ['RUN'] == 'first' else 45); live_on()"
    cluster.apply(gate("first"), gated(training("demo", body)))
    with watched_percentages(cluster, "demo", tmp_path) as percentages:
        wait_for_progress(cluster, "demo", progressPercentage=40)
        cluster.apply(gate("second"))
        cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec":{"suspend":true}}')
        cluster.wait_for_state("demo", "Suspended")
        until(lambda: not cluster.list("pod"), "its pods are gone")
        assert progress(cluster, "demo")["progressPercentage"] == 40

        cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        percentages.wait_for("40", "45")


def test_failed(cluster: Cluster) -> None:
    """A failed training keeps what it reported last; nothing makes it 100 %."""
    cluster.apply(training("demo", "say(progressPercentage=70, currentStep=7, totalSteps=10); sys.exit(3)"))

    cluster.wait_for_condition("demo", "Failed")
    found = wait_for_progress(cluster, "demo", progressPercentage=70)
    assert (found["currentStep"], found["totalSteps"]) == (7, 10)


def test_complete_is_not_a_hundred_per_cent(cluster: Cluster) -> None:
    """A training that ends well before its last step is Complete, and shows how far it came."""
    cluster.apply(training("demo", "say(currentStep=7, totalSteps=10)"))

    cluster.wait_for_condition("demo", COMPLETE)
    wait_for_progress(cluster, "demo", progressPercentage=70)


def test_same_name_again(cluster: Cluster, tmp_path: Path) -> None:
    """A TrainJob does not inherit what another one of its name has reported."""
    cluster.apply(training("demo", "say(progressPercentage=80); live_on()"))
    wait_for_progress(cluster, "demo", progressPercentage=80)
    cluster.kubectl("delete", "trainjob", "demo")

    cluster.apply(training("demo", "time.sleep(1); say(progressPercentage=15); live_on()"))

    with watched_percentages(cluster, "demo", tmp_path) as percentages:
        percentages.wait_for("15")


def test_manager_dies_while_a_training_runs(cluster: Cluster, manager: Manager) -> None:
    """The next manager goes on, also with what was printed while none ran."""
    body = """
    say(trainMetrics={"loss": 0.125})
    for step in range(1, 3000):
        say(currentStep=step, totalSteps=3000)
        time.sleep(0.1)
    """
    cluster.apply(training("demo", body))
    until(lambda: progress(cluster, "demo").get("currentStep", 0) > 5, "progress")
    with killed(manager):
        before = progress(cluster, "demo")["currentStep"]
        until(lambda: lines_of(cluster, "demo") > before + 10, "it trains on")
        assert progress(cluster, "demo")["currentStep"] == before
    until(lambda: progress(cluster, "demo")["currentStep"] > before + 10, "progress goes on", timeout=SECONDS)
    assert progress(cluster, "demo")["trainMetrics"] == {"loss": "0.125"}


def test_training_ends_while_no_manager_runs(cluster: Cluster, manager: Manager) -> None:
    """The next manager reads the log of a pod that has ended, and writes the last message."""
    body = """
    say(progressPercentage=10)
    time.sleep(5)
    say(progressPercentage=100, evalMetrics={"accuracy": 0.99})
    """
    cluster.apply(training("demo", body))
    wait_for_progress(cluster, "demo", progressPercentage=10)
    with killed(manager):
        until(lambda: cluster.list("pod")[0]["status"]["phase"] == "Succeeded", "the pod has ended")
        assert progress(cluster, "demo")["progressPercentage"] == 10

    cluster.wait_for_state("demo", COMPLETE)
    assert wait_for_progress(cluster, "demo", progressPercentage=100)["evalMetrics"] == {"accuracy": "0.99"}


def test_connection_breaks(cluster: Cluster, manager: Manager, tmp_path: Path) -> None:
    """When the API server cannot be reached for a while, what was printed meanwhile is caught up with."""
    body = """
    for step in range(1, 3000):
        say(currentStep=step, totalSteps=3000, **({"evalMetrics": {"step": step}} if step == 30 else {}))
        time.sleep(0.1)
    """
    configuration = CONFIGURATION | {"controller": {"namespace": cluster.namespace}}
    with cuttable(cluster.manager_kubeconfig, tmp_path / "kubeconfig") as proxy:
        own = make_manager(replace(cluster, manager_kubeconfig=tmp_path / "kubeconfig"), tmp_path, **configuration)
        manager.stop()
        try:
            own.start(ready="started controller")
            cluster.apply(training("demo", body))
            until(lambda: progress(cluster, "demo").get("currentStep", 0) > 5, "progress")
            with proxy.cut():
                before = progress(cluster, "demo")["currentStep"]
                until(lambda: lines_of(cluster, "demo") > max(before, 35), "it trains on")
            until(lambda: progress(cluster, "demo")["currentStep"] > max(before, 35), "it goes on", timeout=SECONDS)
            assert progress(cluster, "demo")["evalMetrics"] == {"step": "30"}
            assert own.series(cluster, "trainer_progress_reconnects_total") >= 1
        finally:
            own.stop()
            manager.start(ready="started manager")


def lines_of(cluster: Cluster, name: str) -> int:
    return len(cluster.kubectl("logs", f"job/{name}-node-0").stdout.splitlines())


def test_whatever_is_printed_between(cluster: Cluster, manager: Manager, tmp_path: Path) -> None:
    """Endless lines, bytes that are no text, progress bars and look-alikes hide no message and make none."""
    body = """
    def next(percentage):
        time.sleep(0.5)
        say(progressPercentage=percentage)
    next(10)
    write(b"x" * 200_000 + TAG.encode() + b' {"progressPercentage": 99}' + b"y" * 1_000_000 + b"\\n")
    next(20)
    write(b"\\xff\\xfe\\x00\\x1b[31m" + os.urandom(100_000) + b"\\n")
    write("the last message was " + TAG + ' {"progressPercentage": 98}\\n')
    next(30)
    write("\\r 10%|###       | 1/10\\r 20%|####      | 2/10\\r")
    next(40)
    write("\\r 30%|#####     | 3/10\\n  ")
    next(50)
    write(b"z" * 70_000)
    live_on()
    """
    messages = manager.series(cluster, "trainer_progress_messages_total")
    cluster.apply(training("demo", body))
    with watched_percentages(cluster, "demo", tmp_path) as percentages:
        wait_for_progress(cluster, "demo", progressPercentage=50)
        assert set(percentages.seen()) <= {"10", "20", "30", "40", "50"}
    assert manager.series(cluster, "trainer_progress_messages_total") == messages + 5
    (event,) = events(cluster, "TrainerStatusRejected")
    assert 'the tag stands behind "the last message was ", which no known launcher writes' in event["message"]


def test_only_the_leader_follows(cluster: Cluster, manager: Manager, tmp_path: Path) -> None:
    """Of two managers that share a lease the leader alone reads logs; the other does when it is gone."""
    election = {"leaderElect": True, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
    configuration = CONFIGURATION | {"controller": {"namespace": cluster.namespace}, "leaderElection": election}
    first = make_manager(cluster, tmp_path, "first", **configuration)
    second = make_manager(cluster, tmp_path, "second", **configuration, **other_ports())
    manager.stop()
    try:
        first.start(ready="started controller")
        second.start(ready="found leader")
        body = "\nfor step in range(3000): say(currentStep=step, totalSteps=3000); time.sleep(0.1)"
        cluster.apply(training("demo", body))
        until(lambda: progress(cluster, "demo"), "a report", timeout=SECONDS)
        assert first.series(cluster, "trainer_progress_active_streams") == 1
        assert second.series(cluster, "trainer_progress_active_streams") == 0
        assert second.series(cluster, "trainer_progress_lines_total") == 0

        first.stop()
        before = progress(cluster, "demo")["currentStep"]
        until(lambda: progress(cluster, "demo")["currentStep"] > before, "the other goes on", timeout=SECONDS)
        assert second.series(cluster, "trainer_progress_active_streams") == 1
    finally:
        first.stop()
        second.stop()
        manager.start(ready="started manager")


def test_field_manager(cluster: Cluster) -> None:
    """Progress has a field manager of its own, which owns nothing else."""
    cluster.apply(training("demo", "say(progressPercentage=10); live_on()"))
    wait_for_progress(cluster, "demo", progressPercentage=10)

    shown = cluster.kubectl("get", "trainjob", "demo", "-o", "yaml", "--show-managed-fields").stdout
    managed = yaml.safe_load(shown)["metadata"]["managedFields"]

    (ours,) = [entry for entry in managed if entry["manager"] == "trainer-progress"]
    assert (ours["operation"], ours["subresource"]) == ("Apply", "status")
    assert list(ours["fieldsV1"]) == ["f:status"]
    assert list(ours["fieldsV1"]["f:status"]) == ["f:trainerStatus"]
    others = [entry for entry in managed if entry is not ours]
    assert "f:trainerStatus" not in str(others)


def test_stall(cluster: Cluster, manager: Manager) -> None:
    """A training that repeats itself is reported once, and is Stalled without an ETA until the stall ends."""
    body = """
    while True:
        say(currentStep=2, totalSteps=10, estimatedRemainingSeconds=28)
        time.sleep(0.1)
    """
    before = manager.series(cluster, "trainer_progress_stalls_total")
    cluster.apply(training("demo", body, annotations={STALL_SECONDS: "2"}))

    (event,) = until(lambda: events(cluster, "TrainingStalled"), "an event", timeout=SECONDS)
    assert event["type"] == "Warning"
    assert event["message"].startswith("no progress for 2 seconds")
    assert "step 2 of 10" in event["message"]
    cluster.wait_for_state("demo", "Stalled")
    _, columns = cluster.kubectl("get", "trainjob", "demo").stdout.splitlines()
    assert columns.split()[:-1] == ["demo", "Stalled", "20"]
    found = condition(cluster, "demo", "Stalled")
    assert (found["status"], found["reason"]) == ("True", "NoProgress")
    assert manager.series(cluster, "trainer_progress_stalls_total") == before + 1
    assert manager.series(cluster, "trainer_progress_stalled_jobs") == 1

    cluster.kubectl("annotate", "trainjob", "demo", "--overwrite", f"{STALL_SECONDS}=9999")
    cluster.wait_for_state("demo", "Running")
    assert condition(cluster, "demo", "Stalled")["status"] == "False"
    assert manager.series(cluster, "trainer_progress_stalled_jobs") == 0
    until(lambda: "estimatedRemainingSeconds" in progress(cluster, "demo"), "an estimate again", timeout=SECONDS)


def test_events_and_series_of_a_quiet_training(cluster: Cluster, manager: Manager) -> None:
    """A training that reports nothing is read, has no progress, and nobody is warned."""
    lines = manager.series(cluster, "trainer_progress_lines_total")
    cluster.apply(training("demo", "write('loss 0.5\\n' * 10)"))

    cluster.wait_for_state("demo", COMPLETE)

    until(lambda: manager.series(cluster, "trainer_progress_lines_total") >= lines + 10, "its lines", timeout=SECONDS)
    until(
        lambda: manager.series(cluster, "trainer_progress_active_streams") == 0, "its stream has ended", timeout=SECONDS
    )
    assert progress(cluster, "demo") == {}
    assert not events(cluster, "TrainerStatusRejected")
