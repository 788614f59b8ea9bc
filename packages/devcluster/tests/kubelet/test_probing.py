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
    ],
)
def test_what_is_probed(probe: Object, expected: ProbeSpec) -> None:
    """A port is looked for at the pod's own address, unless the probe says otherwise."""
    container = {"readinessProbe": probe, "ports": [{"name": "ssh", "containerPort": 2222}]}
    found = Probe.of(container, "readinessProbe", ADDRESS)
    assert found is not None
    assert found.action == expected


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
