"""Probes: what is asked, when, and what follows from the answers."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from trainer.kube.objects import Object
from trainer_devcluster.kubelet.errors import ContainerCreateError
from trainer_devcluster.kubelet.pod_spec import ProbeKind
from trainer_devcluster.kubelet.probing import Probe
from trainer_devcluster.kubelet.shim.reports import Probed
from trainer_devcluster.kubelet.shim.spec import ProbeSpec
from trainer_kube_testing import ManualClock, settle

ADDRESS = "10.88.0.7"
ACTION: Object = {"tcpSocket": {"port": 2222}}


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        pytest.param(ACTION, ProbeSpec("tcp", 1, host=ADDRESS, port=2222), id="tcp"),
        pytest.param(
            {"tcpSocket": {"port": "ssh", "host": "127.0.0.1"}, "timeoutSeconds": 3},
            ProbeSpec("tcp", 3, host="127.0.0.1", port=2222),
            id="named port",
        ),
        pytest.param(
            {
                "httpGet": {
                    "port": "2222",
                    "path": "ready",
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "A", "value": "b"}],
                }
            },
            ProbeSpec("http", 1, host=ADDRESS, port=2222, scheme="https", path="/ready", headers=(("A", "b"),)),
            id="http",
        ),
        pytest.param(
            {"exec": {"command": ["test", "-e", "x"]}}, ProbeSpec("exec", 1, command=("test", "-e", "x")), id="exec"
        ),
    ],
)
def test_what_is_probed(probe: Object, expected: ProbeSpec) -> None:
    """A port is looked for at the pod's own address, unless the probe says otherwise."""
    container = {"readinessProbe": probe, "ports": [{"name": "ssh", "containerPort": 2222}]}
    found = Probe.of(container, "readinessProbe", ADDRESS)
    assert found is not None
    assert found.action == expected


def test_container_without_a_probe() -> None:
    """Nothing is probed."""
    assert Probe.of({"name": "c"}, "readinessProbe", ADDRESS) is None


def test_unknown_port_name() -> None:
    """The container could never become ready, so it is not started."""
    container = {"readinessProbe": {"tcpSocket": {"port": "ssh"}}}
    with pytest.raises(ContainerCreateError, match="readinessProbe names port 'ssh', which is none of"):
        Probe.of(container, "readinessProbe", ADDRESS)


class Patient:
    """A container that answers probes as the test says."""

    def __init__(self) -> None:
        self.answer = "f"
        self.probed = 0

    async def probe(self, probe: ProbeSpec) -> Probed:
        """See `Probeable.probe`."""
        self.probed += 1
        found = {"s": (True, "", False), "f": (False, "refused", False), "e": (False, "no such command", True)}
        return Probed(probe.number, *found[self.answer])


async def watched(script: str, kind: ProbeKind, *, late: float = 0.0, **fields: Any) -> tuple[list[str], Patient]:
    """What is reported about a container whose probes go as in the script.

    Each letter is a probe, `s`, `f` or `e` (cannot be carried out); `t` is a second.
    """
    reported: list[str] = []
    container, clock = Patient(), ManualClock()
    probe = Probe.of({kind: {**ACTION, "periodSeconds": 5, **fields}}, kind, ADDRESS)
    assert probe is not None

    async def watch() -> None:
        await probe.watch(
            container,
            clock,
            since=clock.monotonic() - late,
            on_change=lambda found: reported.append("yes" if found else "no"),
            on_failure=reported.append,
        )

    async with anyio.create_task_group() as tasks:
        container.answer = script[0].replace("t", "f")
        tasks.start_soon(watch)
        await settle()
        for letter in script[1:]:
            container.answer = letter.replace("t", "f")
            await clock.advance(1 if letter == "t" else 5)
            await settle()
        tasks.cancel_scope.cancel()
    return reported, container


UNREADY = "Readiness probe failed: refused"


@pytest.mark.parametrize(
    ("script", "fields", "expected"),
    [
        pytest.param("s", {}, ["yes"], id="at once"),
        pytest.param("fs", {}, [UNREADY, "yes"], id="at the second probe"),
        pytest.param("sffs", {}, ["yes", UNREADY, UNREADY], id="a few failures do not matter"),
        pytest.param("sfff", {}, ["yes", *[UNREADY] * 3, "no"], id="as many failures as the threshold do"),
        pytest.param("sfs", {"failureThreshold": 1}, ["yes", UNREADY, "no", "yes"], id="threshold of failures"),
        pytest.param("sfss", {"successThreshold": 2}, [UNREADY, "yes"], id="threshold of successes"),
        pytest.param("ttt", {"initialDelaySeconds": 3}, [], id="not before the delay is over"),
        pytest.param("tttf", {"initialDelaySeconds": 3}, [UNREADY], id="when the delay is over"),
    ],
)
async def test_readiness(script: str, fields: Object, expected: list[str]) -> None:
    """Failures are reported one by one, readiness when it changes."""
    assert (await watched(script, "readinessProbe", **fields))[0] == expected


DEAD = "Liveness probe failed: refused"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("ss", [], id="alive"),
        pytest.param("ffs", [DEAD, DEAD], id="too few failures"),
        pytest.param("fff", [DEAD, DEAD, DEAD, "no"], id="dead"),
        pytest.param(
            "eee",
            ["Liveness probe errored and resulted in unknown state: no such command"] * 3,
            id="a probe that cannot be carried out says nothing",
        ),
    ],
)
async def test_liveness(script: str, expected: list[str]) -> None:
    """A container is alive until enough probes in a row say that it is not."""
    assert (await watched(script, "livenessProbe"))[0] == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("fs", ["Startup probe failed: refused", "yes"], id="started"),
        pytest.param("fff", [*["Startup probe failed: refused"] * 3, "no"], id="not started in time"),
    ],
)
async def test_startup(script: str, expected: list[str]) -> None:
    """A start succeeds once, or fails when it has taken too long."""
    assert (await watched(script, "startupProbe"))[0] == expected


async def test_delay_counts_from_the_start() -> None:
    """A probe that begins late, because another had to succeed first, does not wait for what has passed already."""
    reported, _ = await watched("tt", "readinessProbe", late=9, initialDelaySeconds=10)
    assert reported == [UNREADY]


async def test_probes_are_a_period_apart() -> None:
    """Between two probes nothing is asked."""
    _, container = await watched("sttttt", "readinessProbe")
    assert container.probed == 2
