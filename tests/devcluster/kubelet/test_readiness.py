from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from trainer.devcluster.kubelet.errors import ContainerCreateError
from trainer.devcluster.kubelet.readiness import ReadinessProbe
from trainer.devcluster.kubelet.shim.reports import Probed
from trainer.devcluster.kubelet.shim.spec import ProbeSpec
from trainer.kube.testing import ManualClock, settle

if TYPE_CHECKING:
    from trainer.kube.objects import Object

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
    found = ReadinessProbe.of(container, ADDRESS)
    assert found is not None
    assert found.probe == expected


def test_container_without_a_probe() -> None:
    """It is ready when it runs."""
    assert ReadinessProbe.of({"name": "c"}, ADDRESS) is None


def test_unknown_port_name() -> None:
    """The container could never become ready, so it is not started."""
    container = {"readinessProbe": {"tcpSocket": {"port": "ssh"}}}
    with pytest.raises(ContainerCreateError, match="readinessProbe names port 'ssh', which is none of"):
        ReadinessProbe.of(container, ADDRESS)


class Patient:
    """A container that answers probes as it is told to."""

    def __init__(self) -> None:
        self.succeeds = False
        self.probed = 0

    async def probe(self, probe: ProbeSpec) -> Probed:
        """See `Probeable.probe`."""
        self.probed += 1
        return Probed(probe.number, success=self.succeeds, message="" if self.succeeds else "refused")


async def watched(script: str, **fields: Any) -> tuple[list[str], Patient]:
    """What is told about a container whose probes go as in the script: one letter each, `s` or `f`; `t` is a second."""
    told: list[str] = []
    container, clock = Patient(), ManualClock()
    probe = ReadinessProbe.of({"readinessProbe": {**ACTION, "periodSeconds": 5, **fields}}, ADDRESS)
    assert probe is not None

    async def watch() -> None:
        await probe.watch(
            container,
            clock,
            on_change=lambda is_ready: told.append("ready" if is_ready else "not ready"),
            on_failure=told.append,
        )

    async with anyio.create_task_group() as tasks:
        container.succeeds = script[0] == "s"
        tasks.start_soon(watch)
        await settle()
        for letter in script[1:]:
            container.succeeds = letter == "s"
            await clock.advance(1 if letter == "t" else 5)
            await settle()
        tasks.cancel_scope.cancel()
    return told, container


@pytest.mark.parametrize(
    ("script", "fields", "expected"),
    [
        pytest.param("s", {}, ["ready"], id="at once"),
        pytest.param("fs", {}, ["refused", "ready"], id="at the second probe"),
        pytest.param("sffs", {}, ["ready", "refused", "refused"], id="a few failures do not matter"),
        pytest.param(
            "sfff",
            {},
            ["ready", "refused", "refused", "refused", "not ready"],
            id="as many failures as the threshold do",
        ),
        pytest.param(
            "sfs", {"failureThreshold": 1}, ["ready", "refused", "not ready", "ready"], id="threshold of failures"
        ),
        pytest.param("sfss", {"successThreshold": 2}, ["refused", "ready"], id="threshold of successes"),
        pytest.param("ttt", {"initialDelaySeconds": 3}, [], id="not before the delay is over"),
        pytest.param("tttf", {"initialDelaySeconds": 3}, ["refused"], id="when the delay is over"),
    ],
)
async def test_readiness(script: str, fields: Object, expected: list[str]) -> None:
    """Failures are told one by one, readiness when it changes."""
    assert (await watched(script, **fields))[0] == expected


async def test_probes_are_a_period_apart() -> None:
    """Between two probes nothing is asked."""
    _, container = await watched("sttttt")
    assert container.probed == 2
