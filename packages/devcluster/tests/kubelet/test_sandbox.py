"""What pods see and leave behind on the machine."""

from __future__ import annotations

import importlib.metadata
import secrets
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest

from packages.devcluster.tests.kubelet.fakes import OpenRunner, make_pod, processes_with, shell, wait_for_log
from packages.devcluster.tests.kubelet.modes import every_mode, isolated_modes, simplest_isolated_mode
from trainer.kube.objects import Object
from trainer_devcluster.kubelet.pod_directory import PodDirectory
from trainer_devcluster.kubelet.sandbox import EXTRAS, explained
from trainer_devcluster.kubelet.shim.reports import NOT_FOUND


def exists(path: str) -> bool:
    """Whether the machine has this path."""
    return Path(path).exists()


def network_interfaces() -> list[str]:
    """Names of the machine's network interfaces."""
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def mounts() -> str:
    """The machine's mounts."""
    return Path("/proc/self/mountinfo").read_text()


@every_mode
async def test_another_version_is_installed(
    open_runner: OpenRunner, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod waits, and an event says why, while the files of the dev cluster are those of another version."""
    installed = importlib.metadata.version
    async with open_runner(mode) as runner:
        monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{installed(name)}.post1")
        pod = make_pod("pod", shell("echo hello"))
        async with runner.run(pod):
            await runner.api.wait_until(lambda: "FailedCreatePodSandBox" in runner.api.reasons())
            assert any("start it again (trainer down, trainer up)" in event[-1] for event in runner.api.events)
            monkeypatch.undo()
            await runner.api.wait_for_phase("pod", "Succeeded")
        assert runner.log(pod) == "hello\n"


@isolated_modes
async def test_mount_points_only_inside(open_runner: OpenRunner, mode: str, tmp_path: Path) -> None:
    """Volumes appear at paths that the machine does not have, and the machine never gets them."""
    top, nested = f"/workspace-{secrets.token_hex(4)}", f"/etc/devcluster-{secrets.token_hex(4)}/deep/config"
    present = tmp_path / "present"
    present.mkdir()
    (present / "kept").write_text("kept")
    mounts = [
        {"name": "data", "mountPath": top},
        {"name": "config", "mountPath": nested},
        {"name": "inner", "mountPath": f"{top}/inner"},
        {"name": "data", "mountPath": str(present / "missing" / "sub"), "subPath": "sub"},
    ]
    script = (
        f"set -e; cat {nested}/key; echo written > {top}/file; echo inner > {top}/inner/file; cat {present}/kept;"
        f"! echo no > {nested}/key; touch {present}/missing/sub/file; ls {top}; test -e /etc/passwd; test -c /dev/null"
    )
    pod = make_pod(
        "pod",
        shell(script, volumeMounts=mounts),
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "inner", "emptyDir": {}},
            {"name": "config", "configMap": {"name": "c"}},
        ],
    )
    async with open_runner(mode) as runner:
        runner.reader.add("ConfigMap", "c", data={"key": "value\n"})
        status = await runner.run_to_end(pod)
        assert status["phase"] == "Succeeded", runner.log(pod)
        assert "value\nkept" in runner.log(pod)
        assert runner.log(pod).endswith("file\ninner\nsub\n")
        volumes = PodDirectory(tmp_path, pod["metadata"]["uid"])
        assert (volumes.volume("data") / "file").read_text() == "written\n"
        assert (volumes.volume("data") / "sub" / "file").exists()
    assert not exists(top)
    assert not exists(str(Path(nested).parent.parent))
    assert [entry.name for entry in present.iterdir()] == ["kept"]


@simplest_isolated_mode
async def test_read_only_mounts_below(open_runner: OpenRunner, mode: str) -> None:
    """A read-only volume leaves what the machine has mounted below as it is."""
    name = f"devcluster-{secrets.token_hex(4)}"
    script = (
        f"touch /machine/{name} 2>/dev/null && echo wrong;"
        f"touch /machine/shm/{name} 2>/dev/null && echo written || echo refused; rm -f /machine/shm/{name}"
    )
    volumes_mounted = [{"name": "v", "mountPath": "/machine", "readOnly": True}]
    pod = make_pod(
        "pod", shell(script, volumeMounts=volumes_mounted), volumes=[{"name": "v", "hostPath": {"path": "/dev"}}]
    )
    async with open_runner(mode) as runner:
        await runner.run_to_end(pod)
        assert runner.log(pod) == "written\n"


@simplest_isolated_mode
async def test_directory_for_everybody_stays_one(open_runner: OpenRunner, mode: str) -> None:
    """A mount point in /tmp does not keep other users of the container from writing there."""
    target = f"/tmp/devcluster-{secrets.token_hex(4)}"
    mounted = [{"name": "v", "mountPath": target}]
    pod = make_pod("pod", shell("stat -c %a /tmp", volumeMounts=mounted), volumes=[{"name": "v", "emptyDir": {}}])
    async with open_runner(mode) as runner:
        await runner.run_to_end(pod)
        assert runner.log(pod) == "1777\n"


@simplest_isolated_mode
async def test_working_directory(open_runner: OpenRunner, mode: str) -> None:
    """A working directory that the machine lacks exists in the container; without one a container has its own."""
    place = f"/code-{secrets.token_hex(4)}"
    first = shell("pwd; echo x > file", workingDir=f"{place}/src")
    pod = make_pod("pod", first, shell("ls -A; echo x > file", "other"))
    async with open_runner(mode) as runner:
        assert (await runner.run_to_end(pod))["phase"] == "Succeeded"
        assert runner.log(pod) == f"{place}/src\n"
        assert runner.log(pod, "other") == ""
    assert not exists(place)


def node(index: int, script: str, namespace: str = "default", **fields: Any) -> Object:
    """A pod of a job with a headless service."""
    name = f"job-node-0-{index}"
    return make_pod(name, shell(script, **fields), namespace=namespace, hostname=name, subdomain="job")


@isolated_modes
async def test_names(open_runner: OpenRunner, mode: str) -> None:
    """Pods of a headless service find each other by every form of their names."""
    wait = "until getent hosts job-node-0-1.job.default > /dev/null; do sleep 0.05; done; "
    forms = ["job-node-0-1", "job-node-0-1.job", "job-node-0-1.job.default", "job-node-0-1.job.default.svc"]
    forms.append("job-node-0-1.job.default.svc.cluster.local")
    lookups = "; ".join(f"getent hosts {name} | cut -d' ' -f1" for name in forms)
    service = "getent ahostsv4 job | grep STREAM | wc -l"
    first = node(0, wait + f"hostname; {lookups}; {service}; echo done")
    second = node(1, "sleep 60")
    foreign = node(0, wait + "getent hosts job-node-0-1 || echo unknown", namespace="other")
    async with open_runner(mode) as runner, runner.run(first, second, foreign):
        await wait_for_log(runner, foreign, "unknown")
        await wait_for_log(runner, first, "done")
        address = runner.api.status("job-node-0-1")["podIP"]
        assert runner.log(first).splitlines() == ["job-node-0-0", *[address] * 5, "2", "done"]


@pytest.mark.root
async def test_unknown_names_fail_fast(open_runner: OpenRunner) -> None:
    """In a network without name servers, a name that does not exist is refused without a long wait."""
    pod = make_pod("pod", shell("getent hosts nowhere.invalid; echo $?"))
    async with open_runner("netns") as runner:
        with anyio.fail_after(10):
            await runner.run_to_end(pod)
        assert runner.log(pod) == "2\n"


SERVER = """
import socket, sys
listener = socket.create_server(("0.0.0.0", 29400))
print("listening", flush=True)
while True:
    listener.accept()[0].sendall(socket.gethostname().encode())
"""
CLIENT = """
import socket, sys
print(socket.create_connection((sys.argv[1], 29400), 5).recv(100).decode(), flush=True)
"""


@pytest.mark.root
async def test_two_jobs_on_one_port(open_runner: OpenRunner) -> None:
    """With networks of their own, pods of two jobs listen on one port, and each client reaches its own server."""
    servers = [node(0, f"exec python -c '{SERVER}'", namespace=namespace) for namespace in ("one", "two")]
    async with open_runner("netns") as runner, runner.run(*servers):
        for server in servers:
            await wait_for_log(runner, server, "listening")
        for namespace in ("one", "two"):
            client = node(1, f"python -c '{CLIENT}' job-node-0-0.job", namespace=namespace)
            client["metadata"]["name"] = f"client-{namespace}"
            status = await runner.run_to_end(client)
            assert status["phase"] == "Succeeded", runner.log(client)
            assert runner.log(client) == "job-node-0-0\n"


@pytest.mark.root
async def test_two_clusters(open_runner: OpenRunner) -> None:
    """Two clusters with pod networks of their own run side by side, even with the same addresses."""
    async with open_runner("netns") as one, open_runner("netns") as two:
        statuses = [await runner.run_to_end(make_pod(f"pod-{i}", shell("true"))) for i, runner in enumerate((one, two))]
    assert [status["phase"] for status in statuses] == ["Succeeded", "Succeeded"]
    assert statuses[0]["podIP"] == statuses[1]["podIP"]


async def test_plain_rewrites_names(open_runner: OpenRunner) -> None:
    """Without namespaces, names of pods in environment variables become 127.0.0.1."""
    env = [{"name": "MASTER", "value": "tcp://job-node-0-1.job:29400"}]
    pod = node(0, "echo $MASTER", env=env)
    async with open_runner("plain") as runner:
        await runner.run_to_end(pod)
        assert runner.log(pod) == "tcp://127.0.0.1:29400\n"


@every_mode
async def test_orphans_die_with_the_container(open_runner: OpenRunner, mode: str) -> None:
    """Processes that a container has left behind in sessions of their own end with it."""
    marker = f"60.{secrets.randbelow(10**9)}"
    pod = make_pod("pod", shell(f"setsid sh -c 'setsid sleep {marker} & sleep {marker}' & sleep 0.3; exit 0"))
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert status["phase"] == "Succeeded"
        assert processes_with(marker) == []


@every_mode
async def test_stop_leaves_nothing(open_runner: OpenRunner, mode: str, tmp_path: Path) -> None:
    """When the kubelet stops, no process, mount or network interface is left."""
    interfaces = network_interfaces()
    marker = f"60.{secrets.randbelow(10**9)}"
    pod = make_pod("pod", shell(f"trap '' TERM; setsid sleep {marker} & echo 1; sleep {marker}"))
    async with open_runner(mode) as runner, runner.run(pod):
        await wait_for_log(runner, pod, "1\n")
        assert processes_with(marker)
    assert processes_with(marker) == []
    assert processes_with(str(tmp_path)) == []
    assert str(tmp_path) not in mounts()
    assert network_interfaces() == interfaces


ROOT = Path(__file__).parents[4]
PACKAGE_OF = {"torchrun": "torch", "tune": "torchtune"}
"""Where the package is not called like its program."""


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        pytest.param("torchrun", "pip install 'trainer-operator[examples-torch]' into that environment", id="extra"),
        pytest.param("mpirun", "install mpirun on this machine, such as Debian's package openmpi-bin", id="package"),
        pytest.param("unknown", "install unknown there", id="another"),
    ],
)
def test_missing_program(program: str, remedy: str) -> None:
    """The error says that images are not pulled, where programs come from, and what to install."""
    problem = f'exec: "{program}": {NOT_FOUND}'
    assert explained(problem, program, {"PATH": "/venv/bin:/usr/bin"}) == (
        f"{problem}: the dev cluster pulls no images, containers run what the environment of /venv/bin and this "
        f"machine have; {remedy}"
    )


def test_other_problems() -> None:
    """They are as the shim has reported them."""
    problem = 'exec: "/bin/x": permission denied'
    assert explained(problem, "/bin/x", {"PATH": "/venv/bin"}) == problem


@pytest.mark.parametrize("program", EXTRAS)
def test_extras(program: str) -> None:
    """Each extra exists, and has the package that brings the program."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    packages = [requirement.split("==")[0] for requirement in extras[EXTRAS[program]]]
    assert PACKAGE_OF.get(program, program) in packages
