"""Order of containers, hooks and probes with real processes."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.kubelet.fakes import (
    OpenRunner,
    PodRunner,
    eventually,
    make_pod,
    mounting,
    shell,
    terminated,
    wait_for_log,
)
from packages.devcluster.tests.kubelet.modes import every_mode, simplest_isolated_mode, simplest_mode
from trainer.kube.objects import Object
from trainer_devcluster.kubelet.container_supervisor import RestartBackoff
from trainer_devcluster.kubelet.options import DEFAULT_RESTART_BACKOFF
from trainer_kube_testing import ManualClock


def test_pauses() -> None:
    """The first restart is immediate, later ones wait 10 s, 20 s ... 5 min, until a run of ten minutes."""
    backoff = RestartBackoff(DEFAULT_RESTART_BACKOFF)
    assert [backoff.next_pause(1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert [backoff.next_pause(600), backoff.next_pause(1)] == [0, 10]


SHARED: dict[str, Any] = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNTS = mounting(v="/shared-test")
JOURNAL = "/shared-test/journal"


def noting(script: str, name: str = "main", **fields: Any) -> Object:
    """A container that can note what it does in a file that all share."""
    return shell(script.replace("note", f">> {JOURNAL} echo {name}"), name, volumeMounts=MOUNTS, **fields)


def loitering(name: str, **fields: Any) -> Object:
    """A sidecar that notes its start and its end."""
    script = "trap 'note end; exit 0' TERM; note start; while :; do sleep 0.02; done"
    return noting(script, name, restartPolicy="Always", **fields)


def journal(runner: PodRunner) -> list[str]:
    """What containers have noted."""
    (path,) = runner.data_dir.glob("sandboxes/*/volumes/*/journal")
    return path.read_text().splitlines()


def killed(runner: PodRunner) -> list[str]:
    """Messages of all events that tell of a container's end."""
    return [message for _, reason, message in runner.api.events if reason == "Killing"]


@simplest_isolated_mode
@pytest.mark.parametrize(
    ("code", "phase"), [pytest.param(0, "Succeeded", id="success"), pytest.param(3, "Failed", id="failure")]
)
async def test_sidecars(open_runner: OpenRunner, mode: str, code: int, phase: str) -> None:
    """Sidecars start before the containers, and end after them in reverse order; the pod ends as the containers do."""
    ready = {"exec": {"command": ["test", "-e", JOURNAL]}, "periodSeconds": 0.02}
    init = [
        loitering("a", startupProbe=ready),
        noting("note", "init"),
        loitering("b", startupProbe=ready),
    ]
    pod = make_pod("pod", noting(f"note; exit {code}"), initContainers=init, **SHARED)
    async with open_runner(mode) as runner, runner.run(pod):
        status = await runner.api.wait_for_phase("pod", phase)
        lines = journal(runner)
        assert [line for line in lines if line != "b start"] == ["a start", "init", "main", "b end", "a end"]
        assert sorted(killed(runner)) == ["Stopping container a", "Stopping container b"]
        assert [entry["state"]["terminated"]["exitCode"] for entry in status["initContainerStatuses"]] == [0, 0, 0]
        assert terminated(status)["exitCode"] == code


@simplest_mode
async def test_failed_initialization_ends_sidecars(open_runner: OpenRunner, mode: str) -> None:
    """When an init container fails for good, the sidecars before it end, and the pod fails."""
    init = [shell("exec sleep 60", "side", restartPolicy="Always"), shell("exit 3", "init")]
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(make_pod("pod", shell("echo never"), initContainers=init))
        assert status["phase"] == "Failed"
        side, init_status = status["initContainerStatuses"]
        assert (side["state"]["terminated"]["exitCode"], init_status["state"]["terminated"]["exitCode"]) == (143, 3)
        assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


@simplest_isolated_mode
async def test_containers_start_in_order(open_runner: OpenRunner, mode: str) -> None:
    """The postStart hook of a container delays the next one, and the pod does not count as running before."""
    hook = {"postStart": {"exec": {"command": ["sh", "-c", f"sleep 0.2; echo hook >> {JOURNAL}"]}}}
    first = noting("sleep 60", "first", lifecycle=hook)
    pod = make_pod("pod", first, noting("note; exec sleep 60", "second"), **SHARED)
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_for_phase("pod", "Running")
        await eventually(lambda: journal(runner) == ["hook", "second"])


@simplest_mode
async def test_failed_post_start(open_runner: OpenRunner, mode: str) -> None:
    """A container whose postStart hook fails is ended."""
    hook = {"postStart": {"exec": {"command": ["false"]}}}
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(make_pod("pod", shell("exec sleep 60", lifecycle=hook)))
        assert (status["phase"], terminated(status)["exitCode"]) == ("Failed", 143)
        assert ("Warning", "FailedPostStartHook", "PostStartHook failed") in runner.api.events
        assert killed(runner) == ["FailedPostStartHook"]


def deleting(pod: Object, grace: int) -> Object:
    """The pod after its deletion was accepted."""
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
    return pod | {"metadata": pod["metadata"] | deletion}


SERVER = """
import http.server, os, signal, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, flush=True)
        self.send_error(503)
server = http.server.HTTPServer(("127.0.0.1", 29481), Handler)
print("up", flush=True)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
server.serve_forever()
"""


async def test_http_hook(open_runner: OpenRunner) -> None:
    """A hook may be a request, and has succeeded whatever the status of the answer."""
    hook = {"preStop": {"httpGet": {"port": 29481, "path": "bye", "host": "127.0.0.1"}}}
    pod = make_pod("pod", {"name": "main", "command": ["python", "-c", SERVER], "lifecycle": hook})
    async with open_runner("plain") as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "up")
        worker.update(deleting(pod, grace=30))
        await runner.api.wait_until(lambda: bool(runner.api.deleted))
        assert terminated(runner.api.status("pod"))["exitCode"] == 0
        assert "/bye" in runner.log(pod)
        assert "FailedPreStopHook" not in runner.api.reasons()


@simplest_mode
async def test_failed_pre_stop(open_runner: OpenRunner, mode: str) -> None:
    """A preStop hook that fails is reported, and the container ends all the same."""
    hook = {"preStop": {"exec": {"command": ["false"]}}}
    pod = make_pod("pod", shell("echo up; exec sleep 60", lifecycle=hook))
    async with open_runner(mode) as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "up")
        worker.update(deleting(pod, grace=30))
        await runner.api.wait_until(lambda: bool(runner.api.deleted))
        assert ("Warning", "FailedPreStopHook", "PreStopHook failed") in runner.api.events
        assert terminated(runner.api.status("pod"))["exitCode"] == 143


@simplest_mode
async def test_pre_stop_counts_towards_the_grace_period(open_runner: OpenRunner, mode: str) -> None:
    """A hook that takes too long is given up, and then the program still has two seconds."""
    clock = ManualClock()
    script = "trap 'echo asked' TERM; echo up; while :; do sleep 0.02; done"
    pod = make_pod("pod", shell(script, lifecycle={"preStop": {"sleep": {"seconds": 60}}}))
    async with open_runner(mode, clock) as runner, runner.run(pod) as (worker,):
        await wait_for_log(runner, pod, "up")
        worker.update(deleting(pod, grace=10))
        await clock.wait_for_sleepers(2)
        assert sorted(clock.sleeping) == [10, 60]
        await clock.advance(10)
        await wait_for_log(runner, pod, "asked")
        await clock.wait_for_sleepers(1)
        assert clock.sleeping == [2]
        await clock.advance(2)
        await runner.api.wait_until(lambda: bool(runner.api.deleted))
        assert terminated(runner.api.status("pod"))["exitCode"] == 137


@every_mode
async def test_liveness(open_runner: OpenRunner, mode: str) -> None:
    """A container that fails its liveness probe is ended and started again."""
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 0.02, "failureThreshold": 2}
    pod = make_pod("pod", shell("exec sleep 60", livenessProbe=probe), restartPolicy="OnFailure")
    async with open_runner(mode) as runner, runner.run(pod):

        def restarts() -> int:
            return int((runner.api.status("pod").get("containerStatuses") or [{}])[0].get("restartCount") or 0)

        await runner.api.wait_until(lambda: restarts() == 1)
        last = runner.api.status("pod")["containerStatuses"][0]["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (143, "Error")
        assert killed(runner)[0] == "Container main failed liveness probe, will be restarted"


@simplest_mode
async def test_failed_startup(open_runner: OpenRunner, mode: str) -> None:
    """A container that does not start in time is ended."""
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 0.02, "failureThreshold": 2}
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(make_pod("pod", shell("exec sleep 60", startupProbe=probe)))
        assert terminated(status)["exitCode"] == 143
        assert killed(runner) == ["Container main failed startup probe"]
        assert ("Warning", "Unhealthy", "Startup probe failed: ") in runner.api.events
