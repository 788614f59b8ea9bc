"""A program of the tests: writes its own ConfigMap again and again while it is the leader, and prints each version.

`python election_writer.py KUBECONFIG NAMESPACE NAME`
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import anyio

from trainer.kube.election.leader_election import LeaderElectionOptions
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.manager import Manager, ManagerOptions
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.objects import resource_version_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.rest.connection import ConnectionOptions, connect

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 3, 2.0, 0.5
PAUSE = 0.1
"""Seconds between writes, in which a test can stop this process without stopping it within a write."""


async def write_for_ever(manager: Manager, namespace: str, name: str) -> None:
    """Write through the manager's fence, as fast as a busy controller would."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
    for number in itertools.count():
        # A stop waits for the write, as it does for a reconcile.
        with anyio.CancelScope(shield=True):
            written = await manager.client.apply(
                CONFIG_MAPS, {**body, "data": {"number": str(number)}}, field_manager=name, force=True
            )
        # What the tests read, in one write: the thread that writes the log must not come between.
        sys.stdout.write(f"wrote {resource_version_of(written)}\n")
        sys.stdout.flush()
        await anyio.sleep(PAUSE)


async def main(kubeconfig: str, namespace: str, name: str) -> int:
    """Run until a signal."""
    election = LeaderElectionOptions(
        "writer",
        namespace,
        identity=name,
        lease_duration=LEASE_DURATION,
        renew_deadline=RENEW_DEADLINE,
        retry_period=RETRY_PERIOD,
    )
    async with connect(ConnectionOptions(kubeconfig=Path(kubeconfig))) as client:
        manager = Manager(client, options=ManagerOptions(leader_election=election))
        manager.add(lambda: write_for_ever(manager, namespace, name), name="writer")
        await manager.run()
    return 0


if __name__ == "__main__":
    configure_logging()
    sys.exit(run_until_signal(lambda: main(*sys.argv[1:4])))
