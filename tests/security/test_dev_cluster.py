"""Pods of the dev cluster are processes of its user: what one leaves behind makes no other change the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.devcluster.tests.kubelet.conftest import open_runner
from packages.devcluster.tests.kubelet.fakes import OpenRunner, make_pod, mounting, shell
from packages.devcluster.tests.kubelet.modes import simplest_isolated_mode
from trainer.kube.objects import Object, name_of

__all__ = ["open_runner"]

CLAIM = {"name": "claim", "persistentVolumeClaim": {"claimName": "shared"}}
SCRATCH = {"name": "scratch", "emptyDir": {}}


def waiting(status: Object) -> Object:
    """Why a pod's container waits; {} if it does not."""
    found: Object = {}
    for container in status.get("containerStatuses") or ():
        found = container["state"].get("waiting") or {}
    return found


@simplest_isolated_mode
@pytest.mark.parametrize(
    "mounts",
    [
        pytest.param(mounting(claim="/work", scratch="/work/link/made"), id="a mount below the link"),
        pytest.param([{"name": "claim", "mountPath": "/work", "subPath": "link/made"}], id="a subPath"),
    ],
)
async def test_a_link_that_a_pod_has_left(
    open_runner: OpenRunner, mode: str, tmp_path: Path, mounts: list[Object]
) -> None:
    """A pod that mounts something through it does not start, says why, and the machine stays as it is."""
    target = tmp_path / "machine"
    target.mkdir()
    attacker = make_pod("a", shell(f"ln -s {target} /work/link", volumeMounts=mounting(claim="/work")), volumes=[CLAIM])
    victim = make_pod("b", shell("true", volumeMounts=mounts), volumes=[CLAIM, SCRATCH])
    async with open_runner(mode) as runner:
        runner.reader.add("PersistentVolumeClaim", "shared")
        assert (await runner.run_to_end(attacker))["phase"] == "Succeeded"
        async with runner.run(victim):
            await runner.api.wait_until(
                lambda: waiting(runner.api.status(name_of(victim))).get("reason") == "CreateContainerError"
            )
            reason = waiting(runner.api.status(name_of(victim)))
    assert "leads out of" in reason["message"]
    assert list(target.iterdir()) == []
