"""Pods run as real processes, in every pod network."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from packages.devcluster.tests.kubelet.fakes import (
    OpenRunner,
    PodRunner,
    eventually,
    make_pod,
    mounting,
    processes_with,
    shell,
    terminated,
    wait_for_log,
)
from packages.devcluster.tests.kubelet.modes import every_mode, simplest_isolated_mode, simplest_mode
from trainer.kube.errors import TransportError
from trainer.kube.objects import Object, is_condition_true
from trainer_devcluster.kubelet.pod_directory import PodDirectory
from trainer_devcluster.kubelet.shim.spec import LogLimits
from trainer_devcluster.log_paths import log_files, log_path
from trainer_kube_testing import ManualClock


def container_status(status: Object, kind: str = "containerStatuses") -> Object:
    """The status of the first container."""
    first: Object = status[kind][0]
    return first


async def wait_for_waiting(runner: PodRunner, reason: str) -> Object:
    """Wait until the container of the only pod waits for this reason; its waiting state."""

    def waiting() -> Object:
        containers = runner.api.status("pod").get("containerStatuses") or [{"state": {}}]
        state: Object = containers[0]["state"].get("waiting") or {}
        return state

    await runner.api.wait_until(lambda: waiting().get("reason") == reason)
    return waiting()


def condition(status: Object, name: str) -> Object:
    """The condition of this type."""
    found: Object = next(entry for entry in status["conditions"] if entry["type"] == name)
    return found


@every_mode
@pytest.mark.parametrize(
    ("script", "phase", "expected"),
    [
        pytest.param("exit 0", "Succeeded", {"exitCode": 0, "reason": "Completed"}, id="success"),
        pytest.param("exit 3", "Failed", {"exitCode": 3, "reason": "Error"}, id="exit code"),
        pytest.param("kill -9 $$$$", "Failed", {"exitCode": 137, "reason": "Error", "signal": 9}, id="SIGKILL"),
        pytest.param("kill -15 $$$$", "Failed", {"exitCode": 143, "reason": "Error", "signal": 15}, id="SIGTERM"),
    ],
)
async def test_exit(open_runner: OpenRunner, mode: str, script: str, phase: str, expected: Object) -> None:
    """Phase and terminated state say how the program ended, and its whole output is in the log."""
    pod = make_pod("pod", shell(f"echo out; echo err >&2; {script}"))
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == phase
        assert expected.items() <= terminated(status).items()
        assert runner.log(pod) == "out\nerr\n"


@simplest_isolated_mode
async def test_restart_on_failure(open_runner: OpenRunner, mode: str) -> None:
    """A failed container is restarted in place, with its volumes, a count, its last state and the logs of two runs."""
    script = "echo x >> /restart-test/runs; test $(wc -l < /restart-test/runs) = 3"
    pod = make_pod(
        "pod",
        shell(script + " || { echo failed; exit 7; }; echo ok", volumeMounts=mounting(v="/restart-test")),
        restartPolicy="OnFailure",
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == "Succeeded"
        assert container_status(status)["restartCount"] == 2
        assert container_status(status)["lastState"]["terminated"]["exitCode"] == 7
        assert [runner.log(pod, restart_count=count) for count in (1, 2)] == ["failed\n", "ok\n"]
        with pytest.raises(FileNotFoundError):
            runner.log(pod)
        phases = {entry["phase"] for entry in runner.api.statuses["pod"]}
        assert phases <= {"Pending", "Running", "Succeeded"}
        waiting = [container_status(entry)["state"].get("waiting", {}) for entry in runner.api.statuses["pod"]]
        assert "CrashLoopBackOff" in {state.get("reason") for state in waiting}
        assert "BackOff" in runner.api.reasons()


@simplest_mode
async def test_restart_always(open_runner: OpenRunner, mode: str) -> None:
    """With restartPolicy Always even a successful container is restarted, and the pod keeps running."""
    pod = make_pod("pod", shell("exit 0"), restartPolicy="Always")
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_until(
            lambda: bool(runner.api.status("pod")) and container_status(runner.api.status("pod"))["restartCount"] >= 2
        )
        assert "Succeeded" not in {entry["phase"] for entry in runner.api.statuses["pod"]}


@simplest_isolated_mode
async def test_init_containers(open_runner: OpenRunner, mode: str) -> None:
    """Init containers run one after the other before the others, and share volumes with them."""
    mounts = mounting(v="/init-test")
    pod = make_pod(
        "pod",
        shell("cat /init-test/file", volumeMounts=mounts),
        initContainers=[
            shell("echo one >> /init-test/file", "first", volumeMounts=mounts),
            shell("echo two >> /init-test/file", "second", volumeMounts=mounts),
        ],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == "Succeeded"
        assert runner.log(pod) == "one\ntwo\n"
        assert [entry["ready"] for entry in status["initContainerStatuses"]] == [True, True]
        first = next(entry for entry in runner.api.statuses["pod"] if entry["phase"] == "Pending")
        assert condition(first, "Initialized")["message"] == "containers with incomplete status: [first second]"
        assert container_status(first)["state"] == {"waiting": {"reason": "PodInitializing"}}


@simplest_mode
async def test_init_failure(open_runner: OpenRunner, mode: str) -> None:
    """A failed init container fails a pod that does not restart, and the other containers never start."""
    pod = make_pod("pod", shell("echo never"), initContainers=[shell("exit 4", "init")])
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == "Failed"
        assert terminated(status, "initContainerStatuses")["exitCode"] == 4
        assert "waiting" in container_status(status)["state"]


@every_mode
async def test_no_such_executable(open_runner: OpenRunner, mode: str) -> None:
    """A program that does not exist ends the container with StartError, exit code 128 and a message that names it."""
    pod = make_pod("pod", {"name": "main", "image": "example", "command": ["no-such-program"]})
    async with open_runner(mode) as runner:
        state = terminated(await runner.run_to_end(pod))
        assert (state["exitCode"], state["reason"]) == (128, "StartError")
        directory = Path(sys.executable).parent
        assert state["message"] == (
            'exec: "no-such-program": executable file not found in $PATH: the dev cluster pulls no images, containers '
            f"run what the environment of {directory} and this machine have; install no-such-program there"
        )
        assert ("Warning", "Failed", f"Error: {state['message']}") in runner.api.events


@simplest_mode
async def test_no_command(open_runner: OpenRunner, mode: str) -> None:
    """A container without a command waits with a message that says why, until the pod is deleted."""
    pod = make_pod("pod", {"name": "main", "image": "example/image:1"})
    async with open_runner(mode) as runner, runner.run(pod) as (worker,):
        waiting = await wait_for_waiting(runner, "CreateContainerError")
        assert runner.api.status("pod")["phase"] == "Pending"
        assert "Failed" in runner.api.reasons()
        assert "does not pull images" in waiting["message"]
        worker.update(deleting(pod))
        await runner.api.wait_until(lambda: bool(runner.api.deleted))
        assert runner.api.status("pod")["phase"] == "Failed"


@simplest_mode
async def test_missing_secret(open_runner: OpenRunner, mode: str) -> None:
    """A container whose environment needs a missing Secret waits for it."""
    reference = {"name": "s", "key": "token"}
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": reference}}]
    pod = make_pod("pod", shell("echo $TOKEN", env=env))
    async with open_runner(mode) as runner, runner.run(pod):
        waiting = await wait_for_waiting(runner, "CreateContainerConfigError")
        assert waiting["message"] == 'secret "s" not found'
        assert "Failed" in runner.api.reasons()
        runner.reader.add("Secret", "s", data={"token": "aHVzaA=="})
        await runner.api.wait_for_phase("pod", "Succeeded")
        assert runner.log(pod) == "hush\n"


@simplest_isolated_mode
async def test_missing_config_map(open_runner: OpenRunner, mode: str) -> None:
    """A pod whose volume needs a missing ConfigMap stays Pending, says so in an event, and waits for it."""
    pod = make_pod(
        "pod",
        shell("cat /config-test/key", volumeMounts=mounting(v="/config-test")),
        volumes=[{"name": "v", "configMap": {"name": "c"}}],
    )
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_until(lambda: "FailedMount" in runner.api.reasons())
        message = 'MountVolume.SetUp failed for volume "v" : configmap "c" not found'
        assert ("Warning", "FailedMount", message) in runner.api.events
        await runner.api.wait_for_phase("pod", "Pending")
        runner.reader.add("ConfigMap", "c", data={"key": "value"})
        await runner.api.wait_for_phase("pod", "Succeeded")
        assert runner.log(pod) == "value"


@simplest_isolated_mode
async def test_unsupported_volume(open_runner: OpenRunner, mode: str) -> None:
    """A volume type that is not supported keeps the pod Pending, and an event lists those that are."""
    pod = make_pod("pod", shell("true"), volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}])
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_until(lambda: "FailedMount" in runner.api.reasons())
        assert "does not support nfs volumes: use emptyDir" in runner.api.events[-1][2]
        await runner.api.wait_for_phase("pod", "Pending")


@every_mode
async def test_environment_is_minimal(open_runner: OpenRunner, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container sees its own variables, services and a few basic ones, nothing else of the dev cluster's."""
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    pod = make_pod("a-pod", {"name": "main", "command": ["env"], "env": [{"name": "MINE", "value": "yes"}]})
    async with open_runner(mode) as runner:
        await runner.run_to_end(pod)
        variables = dict(line.split("=", 1) for line in runner.log(pod).splitlines())
        others = {name for name in variables if not name.startswith("KUBERNETES_")}
        assert others == {"PATH", "HOME", "LANG", "HOSTNAME", "MINE"}
        assert variables["PATH"].split(":")[0] == str(Path(sys.executable).parent)
        assert variables["HOSTNAME"] == "a-pod"


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({}, "/data is not workingDir", id="no working directory"),
        pytest.param({"workingDir": "/"}, None, id="below"),
    ],
)
async def test_plain_refuses_unreachable_volumes(
    open_runner: OpenRunner, fields: Object, complaint: str | None
) -> None:
    """Without mount namespaces a pod whose volumes cannot be in their place fails, and the message says why."""
    mounts = [{"name": "v", "mountPath": "/data"}]
    pod = make_pod("pod", shell("test -d data", volumeMounts=mounts, **fields), volumes=[{"name": "v", "emptyDir": {}}])
    async with open_runner("plain") as runner:
        status = await runner.run_to_end(pod)
        if complaint is None:
            assert status["phase"] == "Succeeded"
            return
        assert (status["phase"], status["reason"]) == ("Failed", "Unsupported")
        assert complaint in status["message"]
        assert "run the cluster as root, or allow user namespaces" in status["message"]


@pytest.mark.parametrize(
    ("directory", "mount_path", "file"),
    [
        pytest.param("/workspace-test", "/workspace-test", "train.py", id="at the working directory"),
        pytest.param("/workspace-test", "/workspace-test/code/a", "code/a/train.py", id="below it"),
    ],
)
async def test_plain_finds_volumes_from_the_working_directory(
    open_runner: OpenRunner, directory: str, mount_path: str, file: str
) -> None:
    """Without mount namespaces a relative path leads into a volume mounted at the working directory or below it."""
    container = shell(f"cat {file}", workingDir=directory, volumeMounts=mounting(v=mount_path))
    pod = make_pod("pod", container, volumes=[{"name": "v", "configMap": {"name": "c"}}])
    async with open_runner("plain") as runner:
        runner.reader.add("ConfigMap", "c", data={"train.py": "script"})
        await runner.run_to_end(pod)
        assert runner.log(pod) == "script"


def deleting(pod: Object, grace: int = 30) -> Object:
    """The pod after its deletion was accepted."""
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
    return pod | {"metadata": pod["metadata"] | deletion}


@every_mode
@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        pytest.param(
            f"exec {sys.executable} -c 'print(1, flush=True); import time; time.sleep(600)'", 143, "1\n", id="default"
        ),
        pytest.param("trap 'echo bye; exit 5' TERM; echo 1; while :; do sleep 0.05; done", 5, "1\nbye\n", id="handler"),
    ],
)
async def test_termination(open_runner: OpenRunner, mode: str, script: str, code: int, output: str) -> None:
    """Deletion sends SIGTERM; the final status is written before the object is removed."""
    pod = make_pod("pod", shell(script))
    async with open_runner(mode) as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "1\n")
        worker.update(deleting(pod))
        await runner.api.wait_until(lambda: bool(runner.api.deleted))
        status = runner.api.status("pod")
        assert (status["phase"], terminated(status)["exitCode"]) == ("Failed", code)
        assert runner.log(pod) == output
        assert ("Normal", "Killing", "Stopping container main") in runner.api.events


@simplest_mode
async def test_grace_period(open_runner: OpenRunner, mode: str) -> None:
    """A program that ignores SIGTERM is killed after the grace period."""
    clock = ManualClock()
    pod = make_pod("pod", shell("trap '' TERM; echo 1; while :; do sleep 0.05; done"), restartPolicy="Always")
    async with open_runner(mode, clock) as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "1\n")
        worker.update(deleting(pod, grace=17))
        await runner.api.wait_until(lambda: "Killing" in runner.api.reasons())
        assert clock.sleeping == [17]
        await clock.advance(17)
        await runner.api.wait_until(lambda: bool(runner.api.deleted))
        status = runner.api.status("pod")
        assert (status["phase"], terminated(status)["exitCode"]) == ("Failed", 137)


@every_mode
async def test_forced_deletion(open_runner: OpenRunner, mode: str, tmp_path: Path) -> None:
    """A pod whose object is gone is killed at once, and its files are removed."""
    marker = f"60.{secrets.randbelow(10**9)}"
    pod = make_pod("pod", shell(f"trap '' TERM; echo 1; sleep {marker}"))
    async with open_runner(mode) as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "1\n")
        worker.forget()
        directory = PodDirectory(tmp_path, worker.uid)
        await eventually(lambda: not directory.state.exists())
        assert not directory.logs.exists()
        assert processes_with(marker) == []


FORMER = {
    "containerID": "process://former",
    "restartCount": 1,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
}


@simplest_mode
@pytest.mark.parametrize(
    ("policy", "phase", "restarts"),
    [pytest.param("Never", "Failed", 1, id="never"), pytest.param("OnFailure", "Succeeded", 2, id="restart")],
)
async def test_former_kubelet(open_runner: OpenRunner, mode: str, policy: str, phase: str, restarts: int) -> None:
    """What ran under a former kubelet counts as lost, and the restart policy decides about it."""
    status = {"phase": "Running", "containerStatuses": [{"name": "main", **FORMER}]}
    pod = make_pod("pod", shell("exit 0"), restartPolicy=policy) | {"status": status}
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == phase
        found = container_status(status)
        assert found["restartCount"] == restarts
        lost = found["state"] if policy == "Never" else found["lastState"]
        assert lost["terminated"]["reason"] == "ContainerStatusUnknown"
        assert lost["terminated"]["exitCode"] == 137


@simplest_mode
async def test_pod_begins_anew(open_runner: OpenRunner, mode: str) -> None:
    """A pod whose containers were lost with a former kubelet runs its init containers again before them."""
    done = {"name": "init", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    former: Object = {
        "phase": "Running",
        "initContainerStatuses": [done],
        "containerStatuses": [{"name": "main", **FORMER}],
    }
    init = [shell("echo again", "init")]
    pod = make_pod("pod", shell("exit 0"), restartPolicy="OnFailure", initContainers=init) | {"status": former}
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == "Succeeded"
        assert status["initContainerStatuses"][0]["restartCount"] == 1
        assert runner.log(pod, "init", 1) == "again\n"
        assert "SandboxChanged" in runner.api.reasons()


@simplest_mode
async def test_lost_pod_does_not_go_on(open_runner: OpenRunner, mode: str) -> None:
    """A pod that must not restart fails, if any of its containers was lost, also when others never ran."""
    lost = {"name": "side", **FORMER}
    init = [shell("sleep 60", "side", restartPolicy="Always"), shell("true", "init")]
    status = {"phase": "Pending", "podIP": "127.0.0.1", "initContainerStatuses": [lost]}
    async with open_runner(mode) as runner:
        found = await runner.run_to_end(make_pod("pod", shell("true"), initContainers=init) | {"status": status})
        assert found["phase"] == "Failed"
        assert found["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert runner.api.events == []


async def test_deadline_is_brought_forward(open_runner: OpenRunner) -> None:
    """A pod may get a deadline, or a shorter one, while it runs."""
    clock = ManualClock()
    pod = make_pod("pod", shell("echo 1; exec sleep 60"))
    async with open_runner("plain", clock) as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "1\n")
        worker.update(pod | {"spec": pod["spec"] | {"activeDeadlineSeconds": 5}})
        await clock.wait_for_sleepers(1)
        await clock.advance(5)
        assert (await runner.api.wait_for_phase("pod", "Failed"))["reason"] == "DeadlineExceeded"


@simplest_mode
async def test_long_output(open_runner: OpenRunner, mode: str) -> None:
    """Of a long output the newest files are kept, as many and as large as the kubelet's options allow."""
    pod = make_pod("pod", shell("for i in $(seq 2000); do echo line $i; done"))
    async with open_runner(mode) as runner:
        options = replace(runner.host.options, log_limits=LogLimits(max_bytes=4096, max_files=3))
        runner.host = replace(runner.host, options=options)
        await runner.run_to_end(pod)
        log = log_path(runner.data_dir, "uid-default-pod", "main", 0)
        files = await anyio.to_thread.run_sync(log_files, log)
        assert len(files) == 3
        numbers = [int(line.split()[-1]) for path in files.values() for line in path.read_text().splitlines()]
        assert numbers == list(range(numbers[0], 2001))


async def test_unsupported_pod(open_runner: OpenRunner) -> None:
    """A pod that asks for what the dev cluster cannot do fails with a message that names the fields."""
    probes: dict[str, Any] = {
        "livenessProbe": {"exec": {"command": ["true"]}},
        "readinessProbe": {"grpc": {"port": 1}},
        "lifecycle": {"preStop": {"tcpSocket": {"port": 1}}, "stopSignal": "SIGNAL"},
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}],
    }
    pod = make_pod("pod", shell("true", **probes), hostNetwork=True)
    async with open_runner("plain") as runner:
        status = await runner.run_to_end(pod)
        assert status["reason"] == "Unsupported"
        assert "spec.hostNetwork" in status["message"]
        assert "livenessProbe" not in status["message"]
        for field in ("readinessProbe.grpc", "lifecycle.preStop.tcpSocket", "lifecycle.stopSignal"):
            assert f"spec.containers[0].{field}" in status["message"]
        assert "spec.containers[0].restartPolicyRules[0].action RestartAllContainers" in status["message"]


async def test_ignored_fields(open_runner: OpenRunner) -> None:
    """A security context or a limit of a volume has no effect, and an event says so; not of rights taken away."""
    volume = {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}
    harmless = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = shell("true", securityContext=harmless)
    pod = make_pod("pod", container, securityContext={"runAsUser": 1}, volumes=[volume])
    message = (
        "The dev cluster does not carry out spec.securityContext (containers run as the user of the dev cluster); "
        "spec.volumes[0].emptyDir.sizeLimit (volumes share the space of the machine)"
    )
    async with open_runner("plain") as runner, runner.run(pod):
        await runner.api.wait_until(lambda: ("Warning", "Ignored", message) in runner.api.events)


async def test_crash_is_contained(open_runner: OpenRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the kubelet itself fails the pod, and the other pods go on."""
    pods = [make_pod("broken", shell("true")), make_pod("fine", shell("true"))]
    create = PodDirectory.create

    def fail_once(directory: PodDirectory) -> None:
        if "broken" in directory.uid:
            raise RuntimeError("boom")
        create(directory)

    monkeypatch.setattr(PodDirectory, "create", fail_once)
    async with open_runner("plain") as runner, runner.run(*pods):
        status = await runner.api.wait_for_phase("broken", "Failed")
        assert status["reason"] == "KubeletError"
        await runner.api.wait_for_phase("fine", "Succeeded")


async def test_status_is_written_in_the_end(open_runner: OpenRunner) -> None:
    """A status that cannot be written now is written later."""
    async with open_runner("plain") as runner:
        runner.api.failures = [TransportError("connection refused")]
        assert (await runner.run_to_end(make_pod("pod", shell("true"))))["phase"] == "Succeeded"


async def test_lost_node_is_back(open_runner: OpenRunner) -> None:
    """A pod that was marked as not ready while its node was lost is ready again."""
    pod = make_pod("pod", shell("sleep 1000"))
    async with open_runner("plain") as runner, runner.run(pod) as [worker]:
        await runner.api.wait_until(lambda: is_condition_true({"status": runner.api.status("pod")}, "Ready"))
        status = runner.api.status("pod")
        lost = [each | {"status": "False"} if each["type"] == "Ready" else each for each in status["conditions"]]
        written = len(runner.api.statuses["pod"])
        worker.update(pod | {"status": status | {"conditions": lost}})
        await runner.api.wait_until(lambda: len(runner.api.statuses["pod"]) > written)
        assert runner.api.status("pod") == status


@simplest_isolated_mode
async def test_termination_message(open_runner: OpenRunner, mode: str) -> None:
    """What a container writes to its termination log is the message of its last state."""
    pod = make_pod("pod", shell("echo -n reason > /dev/termination-log; exit 1"))
    async with open_runner(mode) as runner:
        assert terminated(await runner.run_to_end(pod))["message"] == "reason"
