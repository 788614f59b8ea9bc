"""When an MPI launcher starts that belongs to a gang."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.labels import ANCESTOR_LABEL
from trainer.framework.building.extraction import extract
from trainer.framework.building.profile import V2ALPHA1_PROFILE
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.mpi import hostfile
from trainer.plugins.mpi.plugin import MPI
from trainer.plugins.mpi.start import SCRIPT
from trainer.v1alpha1.plugins import V1Alpha1MPI
from trainer.v1alpha1.profile import V1ALPHA1_PROFILE

GANGS: list[Object] = [{"coscheduling": {}}, {"volcano": {}}]
AFTER_NODES = [{"name": "node", "status": "Ready"}]
AFTER_DATA = [{"name": "data", "status": "Complete"}]


def enforced(
    version: str = "v2alpha1",
    *,
    group: Object | None = None,
    command: Any = ("mpirun", "a.out"),
    nodes: int = 3,
    is_node: bool = True,
    launcher_waits_for: Any = None,
    nodes_wait_for: Any = None,
    jobset: Any = None,
) -> RuntimeInfo:
    """RuntimeInfo after the plugin, with the Jobs as Kubeflow Trainer ships them."""
    container = {"name": "node", "image": "i"}
    launcher = replicated_job("launcher", container, dependsOn=launcher_waits_for)
    launcher["template"]["metadata"] = {"labels": {ANCESTOR_LABEL: "trainer"}}
    node = replicated_job("node", container, dependsOn=nodes_wait_for)
    policy = {"numNodes": 1, "mpi": {"runLauncherAsNode": is_node}}
    blueprint = runtime(
        replicated_job("data"), node, launcher, policy=policy, podGroupPolicy=group or {}, jobset=jobset
    )
    job = train_job(trainer={"numNodes": nodes, **({"command": list(command)} if command else {})})
    profile, plugin = (V1ALPHA1_PROFILE, V1Alpha1MPI) if version == "v1alpha1" else (V2ALPHA1_PROFILE, MPI)
    info = extract(job, blueprint, profile=profile)
    plugin(StaticReader()).enforce_ml_policy(info, job)
    return info


def dependencies(info: RuntimeInfo, name: str = "launcher") -> list[Object]:
    """What the Jobs of a pod set wait for."""
    job = next(each for each in info.template.replicated_jobs or [] if each.name == name)
    return [each.to_object() for each in job.depends_on or []]


@pytest.mark.parametrize("version", ["v1alpha1", "v2alpha1"])
@pytest.mark.parametrize("group", GANGS, ids=["coscheduling", "volcano"])
def test_a_node_of_a_gang(version: str, group: Object) -> None:
    """It is created with the others as one of the gang, and its command waits until it reaches them."""
    info = enforced(version, group=group, launcher_waits_for=AFTER_NODES, nodes_wait_for=AFTER_DATA)
    assert [pod_set.name for pod_set in info.gang] == ["launcher", "node"]
    assert sum(pod_set.count for pod_set in info.gang) == 3
    assert dependencies(info) == dependencies(info, "node") == AFTER_DATA
    shell, option, script, *words = info.main_container.command
    assert (shell, option, script.replace("$$(", "$(")) == ("/bin/sh", "-c", SCRIPT)
    assert words[:2] == ["mpi-launcher", "demo-launcher-0-0"]
    assert words[3:] == ["mpirun", "a.out"]


@pytest.mark.parametrize(
    ("options", "gang", "waits"),
    [
        pytest.param({"group": None}, None, AFTER_NODES, id="no-gang"),
        pytest.param({"group": GANGS[0], "is_node": False}, ["node"], AFTER_NODES, id="does-not-train"),
        pytest.param({"group": GANGS[0], "nodes": 1}, ["launcher", "node"], AFTER_NODES, id="the-only-node"),
        pytest.param(
            {"version": "v1alpha1", "group": GANGS[0], "command": None, "launcher_waits_for": AFTER_NODES},
            ["node"],
            AFTER_NODES,
            id="unknown-command-with-v1alpha1",
        ),
        pytest.param(
            {"version": "v1alpha1", "group": GANGS[0]},
            ["data", "node", "launcher"],
            [],
            id="waits-for-none",
        ),
        pytest.param(
            {
                "version": "v1alpha1",
                "group": GANGS[0],
                "jobset": {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
            },
            ["node"],
            [],
            id="in-order-with-v1alpha1",
        ),
    ],
)
def test_other_launchers(options: Any, gang: list[str] | None, waits: list[Object]) -> None:
    """The command of any other launcher stays, and so does what its Job waits for."""
    info = enforced(**options)
    assert dependencies(info) == waits
    assert info.main_container.command == ([] if options.get("command", "") is None else ["mpirun", "a.out"])
    assert gang is None or [pod_set.name for pod_set in info.gang] == gang


@pytest.mark.parametrize(
    ("nodes", "command", "is_refused"),
    [
        pytest.param(3, [], True, id="unknown"),
        pytest.param(3, ["mpirun"], False, id="stated"),
        pytest.param(1, [], False, id="no-other-nodes"),
    ],
)
def test_the_command_must_be_known(nodes: int, command: list[str], is_refused: bool) -> None:
    """Nothing can be put in front of the command of an image, which nobody knows here."""
    launcher, node = (replicated_job(name, {"name": "trainer", "image": "i"}) for name in ("launcher", "node"))
    policy = {"numNodes": nodes, "mpi": {"runLauncherAsNode": True}}
    job = train_job(trainer={"command": command} if command else {"args": ["x"]})
    info = extract(job, runtime(launcher, node, policy=policy, podGroupPolicy=GANGS[0]))
    found = [str(each) for each in MPI(StaticReader()).validate(info, None, job)]
    expected = (
        "spec.trainer.command: Required value: must be set, to start it once the nodes of the gang are there: "
        "that of the image is not known here"
    )
    assert found == ([expected] if is_refused else [])


SSH = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
test "$(wc -l < "$CALLS")" -gt "$FAILURES" || exit "$STATUS"
"""
NO_CONNECTION = 255
"""The exit code of ssh itself; any other is that of the command that it has run."""


@pytest.mark.parametrize(
    ("failures", "status", "code", "calls"),
    [
        pytest.param(0, NO_CONNECTION, 7, 2, id="at-once"),
        pytest.param(3, NO_CONNECTION, 7, 5, id="later"),
        pytest.param(1000, NO_CONNECTION, 1, 360, id="never"),
        pytest.param(1000, 1, 7, 2, id="a-node-whose-user-may-not-log-in"),
        pytest.param(1000, 127, 7, 2, id="no-ssh-in-the-image"),
    ],
)
def test_the_program(failures: int, status: int, code: int, calls: int, tmp_path: Path) -> None:
    """It asks each node but itself until sshd answers, then runs the command; it gives up at last.

    Where waiting does not help, the command begins, and mpirun says what is missing.
    """
    for name, text in (("ssh", SSH), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    hosts, log = tmp_path / "hostfile", tmp_path / "calls"
    hosts.write_text("demo-launcher-0-0.demo slots=1\ndemo-node-0-0.demo slots=1\ndemo-node-0-1.demo:1\n")
    log.touch()
    script = SCRIPT.replace(hostfile.PATH, str(hosts))
    command = ["/bin/sh", "-c", script, "mpi-launcher", "demo-launcher-0-0", "-i key", "sh", "-c", 'exit "$0"', "7"]
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(log), "FAILURES": str(failures)}
    variables["STATUS"] = str(status)
    ended = subprocess.run(command, env=variables, check=False, timeout=60)
    lines = log.read_text().splitlines()
    assert (ended.returncode, len(lines)) == (code, calls)
    assert lines[0].endswith("-i key demo-node-0-0.demo true")
    assert code != 7 or lines[-1].endswith("-i key demo-node-0-1.demo true")
