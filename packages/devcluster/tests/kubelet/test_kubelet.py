"""The kubelet as a whole, on an API server in memory."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from packages.devcluster.tests.kubelet.fakes import LIMIT, eventually, make_pod, processes_with, shell, terminated
from trainer.kube.client import DeleteOptions, PatchType
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, annotations_of, is_condition_true, uid_of
from trainer.kube.resource import EVENTS, NODES, PODS
from trainer_devcluster import scheduler
from trainer_devcluster.kubelet import POD_NETWORK_ANNOTATION, Kubelet, KubeletOptions, PodNetworkMode, register
from trainer_devcluster.kubelet.pod_status import StatusWriter
from trainer_kube_testing import FakeClient

REPOSITORY = Path(__file__).parents[4]


def unbound(pod: Object) -> Object:
    """The pod before it was scheduled."""
    return pod | {"spec": {name: value for name, value in pod["spec"].items() if name != "nodeName"}}


@asynccontextmanager
async def running(client: FakeClient, data_dir: Path) -> AsyncIterator[Kubelet]:
    """A kubelet without namespaces, and a scheduler, until the context ends."""
    manager = Manager(client)
    scheduler.register(manager, "laptop")
    kubelet = register(manager, KubeletOptions(data_dir, pod_network=PodNetworkMode.PLAIN))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(LIMIT):
            await kubelet.wait_for_start()
        yield kubelet
        tasks.cancel_scope.cancel()


def phase_of(client: FakeClient) -> str:
    """Phase of the only pod."""
    phase: str = client.objects(PODS)[0].get("status", {}).get("phase", "")
    return phase


async def test_pod_is_bound_and_run(tmp_path: Path) -> None:
    """A new pod is bound to the node, run, and its end is in its status and events."""
    client = FakeClient(unbound(make_pod("pod", shell("exit 3"))))
    async with running(client, tmp_path):
        await eventually(lambda: phase_of(client) == "Failed")
        pod = client.objects(PODS)[0]
        assert pod["spec"]["nodeName"] == "laptop"
        assert terminated(pod["status"])["exitCode"] == 3

        def reported() -> set[tuple[str, str]]:
            return {(event["source"]["component"], event["reason"]) for event in client.objects(EVENTS)}

        expected = {("default-scheduler", "Scheduled"), ("kubelet", "Created"), ("kubelet", "Started")}
        await eventually(lambda: expected <= reported())


async def test_node_tells_the_pod_network(tmp_path: Path) -> None:
    """The Node is ready, has capacity, and says which pod network is in use and what it means."""
    client = FakeClient()
    async with running(client, tmp_path) as kubelet:
        (node,) = client.objects(NODES)
        assert is_condition_true(node, "Ready")
        assert int(node["status"]["capacity"]["cpu"]) >= 1
        assert annotations_of(node)[POD_NETWORK_ANNOTATION] == kubelet.mode
        assert annotations_of(node)["devcluster.trainer/python"] == sys.executable
        assert kubelet.mode.startswith("plain: all pods are 127.0.0.1: one job at a time on a port")


async def test_former_node_is_updated(tmp_path: Path) -> None:
    """The Node of a former process gets the new annotation."""
    former = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop", "labels": {"mine": "kept"}}}
    client = FakeClient(former)
    async with running(client, tmp_path):
        (node,) = client.objects(NODES)
        assert node["metadata"]["labels"]["mine"] == "kept"
        assert POD_NETWORK_ANNOTATION in annotations_of(node)


async def test_deletion(tmp_path: Path) -> None:
    """The final status is written before the pod is removed, which is by a delete without grace period."""
    pod = make_pod("pod", shell("sleep 60"))
    pod["metadata"]["finalizers"] = ["test/hold"]
    client = FakeClient(pod)
    async with running(client, tmp_path):
        await eventually(lambda: phase_of(client) == "Running")
        await client.delete(PODS, "pod", "default")
        await eventually(lambda: len(client.requests_of("delete")) == 2)
        writes = [
            request.verb for request in client.requests if request.verb in {"patch", "delete"} and request.name == "pod"
        ]
        assert writes[-2:] == ["patch", "delete"]
        assert client.requests_of("delete")[1].body == DeleteOptions(grace_period_seconds=0, uid=uid_of(pod))
        assert terminated(client.objects(PODS)[0]["status"])["exitCode"] == 143
        await client.patch(PODS, "pod", {"metadata": {"finalizers": None}}, "default", patch_type=PatchType.MERGE)
        await eventually(lambda: not list((tmp_path / "pods").iterdir()))


async def test_recreated_pod(tmp_path: Path) -> None:
    """A pod that takes over the name of a deleted one is run as a pod of its own."""
    client = FakeClient(make_pod("pod", shell("sleep 60")))
    async with running(client, tmp_path):
        await eventually(lambda: phase_of(client) == "Running")
        await client.delete(PODS, "pod", "default")
        second = make_pod("pod", shell("exit 0"))
        second["metadata"]["uid"] = "second"
        client.add(second)
        await eventually(lambda: phase_of(client) == "Succeeded")


async def test_crashed_worker_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the worker of a pod crashes for good, another one finds its containers lost and ends the pod."""
    failures = [RuntimeError("boom")]
    write = StatusWriter.run

    async def run(writer: StatusWriter) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, writer)
            if failures:
                await eventually(lambda: phase_of(client) == "Running")
                raise failures.pop()

    monkeypatch.setattr(StatusWriter, "run", run)
    monkeypatch.setattr("trainer_devcluster.kubelet.kubelet._WORKER_RESTART", 0)
    client = FakeClient(make_pod("pod", shell("sleep 60")))
    async with running(client, tmp_path):
        await eventually(lambda: phase_of(client) == "Failed")
        assert terminated(client.objects(PODS)[0]["status"])["reason"] == "ContainerStatusUnknown"


async def test_leftovers_are_removed(tmp_path: Path) -> None:
    """Directories of pods that no longer exist go at the start."""
    for parent in ("pods", "sandboxes"):
        (tmp_path / parent / "former-uid").mkdir(parents=True)
    async with running(FakeClient(), tmp_path):
        assert not list(tmp_path.glob("*/former-uid"))


def descendants(pid: int) -> set[int]:
    """PIDs of all processes that descend from this one."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if entry.name.isdigit() else 0
        except OSError:
            continue
        if parent == pid:
            found |= {int(entry.name), *descendants(int(entry.name))}
    return found


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start_kubelet(mode: str, data_dir: Path, script: str, *prefix: str) -> subprocess.Popen[str]:
    """A kubelet in a process of its own, which runs one pod with this script."""
    module = "packages.devcluster.tests.kubelet.kubelet_process"
    command = [*prefix, sys.executable, "-m", module, mode, str(data_dir), script]
    # -m finds the tests from the repository; bytecode must not be written by another user.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
@pytest.mark.parametrize("mode", ["netns", "hosts", "plain"])
def test_nothing_survives_a_killed_kubelet(tmp_path: Path, mode: str) -> None:
    """When the kubelet is killed with SIGKILL, so are all processes of its pods, and no mount or interface is left."""
    marker = f"60.{secrets.randbelow(10**9)}"
    interfaces = sorted(path.name for path in Path("/sys/class/net").iterdir())
    with start_kubelet(mode, tmp_path, f"trap '' TERM; setsid sleep {marker} & sleep {marker}") as kubelet:
        assert kubelet.stdout is not None
        while kubelet.stdout.readline() != "Running\n":
            assert kubelet.poll() is None
        family = descendants(kubelet.pid)
        assert len(family) >= 5
        assert processes_with(marker)
        kubelet.kill()
        kubelet.wait()
    anyio.run(eventually, lambda: not any(map(is_alive, family)))
    assert processes_with(marker) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert sorted(path.name for path in Path("/sys/class/net").iterdir()) == interfaces


NOBODY = 65534


def closed_ancestor(path: Path) -> Path | None:
    """The outermost directory above a path that other users cannot enter, such as root's home."""
    return next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001), None)


def as_nobody() -> list[str]:
    """Command prefix that runs a program in the repository as nobody, wherever interpreter and repository are.

    That takes a private mount namespace in which a tmpfs covers each closed directory and holds only what is needed.
    """
    places = {Path(place).resolve() for place in (sys.base_prefix, sys.prefix, REPOSITORY)}
    outermost = sorted(place for place in places if places.isdisjoint(place.parents))
    closed = {place: closed_ancestor(place) for place in outermost}
    hidden = [(shlex.quote(str(place)), f"/mnt/{number}") for number, place in enumerate(outermost) if closed[place]]
    covers = sorted({shlex.quote(str(cover)) for cover in closed.values() if cover})
    steps = [
        "set -e",
        "mount --make-rprivate /",
        "mount -t tmpfs none /mnt",
        *(f"mkdir {aside}; mount --bind {place} {aside}" for place, aside in hidden),
        *(f"mount -t tmpfs -o mode=755 none {cover}" for cover in covers),
        *(f"mkdir -p {place}; mount --move {aside} {place}" for place, aside in hidden),
        f"cd {shlex.quote(str(REPOSITORY))}",
        f'exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "$@"',
    ]
    return ["unshare", "-m", "sh", "-c", "; ".join(steps), "as-nobody"]


def require_readable() -> None:
    """Skip the test, with the reason, where nobody cannot read the repository or the interpreter even so."""
    command = [*as_nobody(), sys.executable, "-B", "-c", "import packages.devcluster.tests.kubelet.kubelet_process"]
    attempt = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if attempt.returncode:
        reason = attempt.stderr.strip().splitlines()[-1]
        pytest.skip(f"user {NOBODY} may not read {REPOSITORY} or the interpreter ({reason})")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("mode", ["netns", "hosts"])
def test_without_privileges(tmp_path_factory: pytest.TempPathFactory, mode: str) -> None:
    """An ordinary user gets the same pods by a user namespace, in which programs keep the user's ID and no rights."""
    require_readable()
    data_dir = Path("/tmp") / f"devcluster-{secrets.token_hex(4)}"
    data_dir.mkdir()
    os.chown(data_dir, NOBODY, NOBODY)
    script = (
        "id -u; grep CapEff /proc/self/status; hostname; echo x > /unprivileged-test/file; echo $$$$;"
        "until cat /unprivileged-test/probed 2> /dev/null; do sleep 0.1; done"
    )
    try:
        with start_kubelet(mode, data_dir, script, *as_nobody()) as kubelet:
            phases, _ = kubelet.communicate(timeout=60)
        assert "Succeeded" in phases.splitlines()
        (log,) = data_dir.glob("pods/*/main/0.log")
        printed = [line.split(" ", 3)[3] for line in log.read_text().splitlines()]
        assert printed == [str(NOBODY), "CapEff:\t0000000000000000", "pod", "2", f"probed by {NOBODY}"]
    finally:
        subprocess.run(["rm", "-rf", str(data_dir)], check=True)
