"""The short form of test_cluster.py, which every change has to pass: a few trainings on the way there and back."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from e2e import audit
from e2e.dev_cluster import dev_cluster
from e2e.gang_schedulers import COSCHEDULING, install
from e2e.upgrades.changes import HASHES, Writes, changes, unexpected
from e2e.upgrades.released import released
from e2e.upgrades.trainings import RETRIED, Trainings
from e2e.upgrades.versions import Site, Version

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.timeout(400),
]
RESTARTS = r"TrainJob/retried\.status\.restarts: "
"""A field that 0.1.0 does not know."""


def test_there_and_back(tmp_path: Path) -> None:
    """What runs goes on under either version; what waits is resumed by the other one; a new training is trained."""
    log = tmp_path / "audit.log"
    former, tree = Version.of(released()), Version.tree()
    with (
        dev_cluster(tmp_path, environment={audit.VARIABLE: str(log)}) as cluster,
        closing(Site(cluster, tmp_path)) as site,
        cluster.in_namespace("team", waits=False) as team,
    ):
        install(cluster, COSCHEDULING)  # both versions look for its PodGroups
        site.apply(former)
        site.roll_out(former)
        trainings, writes = Trainings(team, tmp_path), Writes(log, "team")
        trainings.begin_few()
        replace(site, trainings, writes, tree)
        trainings.resume("waiting")
        replace(site, trainings, writes, former)
        trainings.resume("paused")
        trainings.finish("plain", RETRIED, "waiting", "paused")


def replace(site: Site, trainings: Trainings, writes: Writes, version: Version) -> None:
    """Another version takes over; of the trainings nothing changes but hashes, and a new one is trained."""
    writes.settled()
    before = trainings.stored()
    site.apply(version)
    site.roll_out(version)
    written = writes.settled()
    assert unexpected(changes(before, trainings.stored()), HASHES, RESTARTS) == []
    assert set(written.values()) <= {1}, "something is written again and again"
    name = f"new-{len(site.managers)}"
    trainings.cluster.apply(trainings.short(name, runtime=RETRIED))
    trainings.cluster.complete(name)
