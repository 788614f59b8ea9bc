"""A tenant, and somebody in the network, attack both replicas in every known way while another namespace works."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from e2e.attacker import TOKEN
from e2e.cluster import Cluster
from e2e.installation import HOST
from e2e.processes import Process, peak_bytes
from e2e.replicas import BRIEF, Replicas, fake_job
from e2e.submission import submitting
from e2e.waiting import until
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS

pytestmark = pytest.mark.timeout(400)
SECONDS = 60
PERCENTILE_99 = 1.0
"""Seconds that a creation in another namespace may take longer than that of a ConfigMap, of which no webhook is asked:
the dev cluster's API server is attacked as well, and shares the machine with both replicas."""
MEMORY_LIMIT = 512 << 20
"""Bytes; the limit of the shipped Deployment."""
TENANT = "e2e-attacker"
FORGED = ("TrainJob to forge", "forged ConfigMap", "forged HorizontalPodAutoscaler")
THROUGH_API_SERVER = (
    "refused TrainJob",
    "largest TrainJob",
    "TrainJob on stored runtime",
    "invented runtime",
    "root certificate",
    *FORGED,
)
AT_WEBHOOK_PORT = ("unknown fields", "forged update", "nested lists", "long kind", "large body")
ATTACKS = (*THROUGH_API_SERVER, "event", "ConfigMap", *AT_WEBHOOK_PORT)
STORED = (
    "largest TrainJob",
    "TrainJob on stored runtime",
    "invented runtime",
    "event",
    "ConfigMap",
    *FORGED,
)
"""Attacks of which the API server has to store something."""


@pytest.fixture
def tenant(replicas: Replicas) -> Iterator[Cluster]:
    """A namespace whose ServiceAccount `default` may do what `edit` and `trainer-edit` allow, and write events."""
    cluster = replace(replicas.cluster, namespace=TENANT)
    cluster.kubectl("create", "namespace", TENANT)
    subject = f"--serviceaccount={TENANT}:default"
    cluster.kubectl("create", "rolebinding", "edit", "--clusterrole=edit", subject)
    resources = "trainjobs.trainer.kubeflow.org,trainingruntimes.trainer.kubeflow.org"
    cluster.kubectl("create", "role", "trainer-edit", "--verb=*", f"--resource={resources}")
    cluster.kubectl("create", "rolebinding", "trainer-edit", "--role=trainer-edit", subject)
    cluster.kubectl("create", "role", "events", "--verb=*", "--resource=events")
    cluster.kubectl("create", "rolebinding", "events", "--role=events", subject)
    yield cluster
    for resource in ("trainjobs", "trainingruntimes"):
        cluster.kubectl("delete", f"--raw=/apis/trainer.kubeflow.org/v2alpha1/namespaces/{TENANT}/{resource}")
    cluster.kubectl("delete", "namespace", TENANT, "--timeout=90s")


def test_attacks(replicas: Replicas, tenant: Cluster, tmp_path: Path) -> None:
    """Creations of others succeed in time at p99; no replica restarts or exceeds the memory that it has."""
    processes = [each.process.pid for each in replicas.both]
    leader = replicas.leader
    attacker = attacker_of(tenant, replicas, tmp_path)
    attacker.start(ready="attacking")
    try:
        with (
            submitting(replicas.cluster, lambda number: fake_job(f"brief-{number}", BRIEF), pause=0.2) as brief,
            submitting(tenant, bare, pause=0.5, resource=CONFIG_MAPS) as floor,
        ):
            assert attacker.wait(timeout=SECONDS + 120) == 0, attacker.output()
    finally:
        attacker.stop()
    answers: dict[str, int] = json.loads(attacker.output().splitlines()[-1])
    peaks = [peak_bytes(pid) for pid in processes]
    sys.stdout.write(
        f"TrainJobs: {summary(brief.seconds)}; ConfigMaps, which no webhook reviews: {summary(floor.seconds)}; "
        f"memory {[peak >> 20 for peak in peaks]} MiB; {answers}\n"
    )
    assert {each for each in ATTACKS if not any(key.startswith(f"{each}: ") for key in answers)} == set()
    assert {each for each in STORED if f"{each}: 201" not in answers} == set(), answers
    assert not brief.refused
    assert [each.process.pid for each in replicas.both] == processes
    assert all(each.process.exit_code() is None for each in replicas.both)
    assert replicas.leader is leader
    assert max(peaks) < MEMORY_LIMIT
    assert percentile(brief.seconds, 0.99) < PERCENTILE_99 + percentile(floor.seconds, 0.99)
    replicas.wait_for_state("Complete", brief.accepted, timeout=120)
    assert "Traceback" not in "".join(each.everything() for each in replicas.both)
    assert_unharmed(tenant)
    # The namespace has series of its own, and is not counted as `other`.
    assert f'namespace="{replicas.cluster.namespace}"' in leader.process.metrics(replicas.cluster)


def assert_unharmed(tenant: Cluster) -> None:
    """Nothing has been built on a forged snapshot, and pods can start."""
    forged = [job for job in tenant.list("trainjobs") if job["metadata"]["name"].startswith("forged-")]
    assert {(job.get("status") or {}).get("state") for job in forged} == {"Blocked"}
    for kind in ("jobsets", "pods"):
        names = tenant.kubectl("get", kind, "-o", "name").stdout.splitlines()
        assert [name for name in names if "/forged-" in name] == []
    until(lambda: tenant.get("configmap", "kube-root-ca.crt"), "the ConfigMap that all pods mount is back")


def bare(number: int) -> Object:
    """A ConfigMap of this number; creating one takes as long as the API server alone takes."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"bare-{number}"}}


def attacker_of(tenant: Cluster, replicas: Replicas, directory: Path) -> Process:
    """The program that attacks, with the token of the tenant; not started."""
    token = tenant.kubectl("create", "token", "default", "--duration=1h").stdout.strip()
    server = yaml.safe_load(tenant.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    webhooks = [f"https://{HOST}:{each.webhooks}" for each in replicas.both]
    command = [sys.executable, "-m", "e2e.attacker", server, TENANT, str(SECONDS), *webhooks]
    return Process(command, directory / "attacker.log", environment={TOKEN: token})


def summary(seconds: Sequence[float]) -> str:
    """How many creations, and how long they took."""
    return (
        f"{len(seconds)}, p50 {percentile(seconds, 0.5):.3f} s, p99 {percentile(seconds, 0.99):.3f} s, "
        f"slowest {max(seconds):.3f} s"
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is at least as large as this share of them."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
