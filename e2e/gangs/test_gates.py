"""Gangs where a feature gate of Kubernetes is off: sentences that name it, before a TrainJob waits for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.cluster import Cluster, train_job
from e2e.conftest import running_cluster
from e2e.gangs.pod_groups import all_at_once, refusal, served_version
from e2e.gangs.trainings import gang_runtime
from e2e.waiting import until

WAITS = 3
"""Exit status of `trainer explain` for a TrainJob that waits."""
REFERENCE = {"kind": "TrainingRuntime", "name": "gang"}

KEY = "topology.kubernetes.io/rack"


def topology(_cluster: Cluster) -> dict[str, Any]:
    """What `topologyKey` becomes in a PodGroup."""
    return {"schedulingConstraints": {"topology": [{"key": KEY}]}}


def disruption(cluster: Cluster) -> dict[str, Any]:
    """What `disruptionMode` becomes; only v1alpha2 has a gate for it."""
    return {"disruptionMode": all_at_once(cluster)}


OPTIONS = [
    pytest.param({"topologyKey": KEY}, topology, "TopologyAwareWorkloadScheduling", id="topology"),
    pytest.param({"disruptionMode": "PodGroup"}, disruption, "WorkloadAwarePreemption", id="disruption"),
]


@pytest.fixture(scope="module")
def without_options(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that places gangs; on this machine, without further gates."""
    if "E2E_KUBECONFIG" in os.environ:
        foreign: Cluster = request.getfixturevalue("session_cluster")
        if not served_version(foreign):
            pytest.skip("this cluster serves no PodGroups of scheduling.k8s.io")
        yield foreign
        return
    gates = "GenericWorkload=true,GangScheduling=true"
    with running_cluster(tmp_path_factory.mktemp("gates"), "--fake-pods", "--feature-gates", gates) as own:
        yield own


def test_a_cluster_without_pod_groups(cluster: Cluster) -> None:
    """Runtimes are warned of, TrainJobs are refused, and one that was there before says what it waits for."""
    if served_version(cluster):
        pytest.skip("this cluster serves PodGroups of scheduling.k8s.io")
    says = ("GenericWorkload", "GangScheduling", "scheduling.k8s.io")
    _names_the_gate(cluster, gang_runtime(), *says)


@pytest.mark.parametrize(("policy", "fields", "gate"), OPTIONS)
def test_an_option_that_needs_a_gate(
    without_options: Cluster, policy: dict[str, str], fields: Callable[[Cluster], dict[str, Any]], gate: str
) -> None:
    """The same for each option that the API server refuses; gangs without it run."""
    if not refusal(without_options, **fields(without_options)):
        pytest.skip(f"this cluster needs no feature gate {gate}, or has it")
    with without_options.in_namespace() as cluster:
        _names_the_gate(cluster, gang_runtime(policy={"workload": policy}), gate, *policy)
        cluster.kubectl("delete", "trainjob,trainingruntime", "--all")
        cluster.apply(gang_runtime(), train_job("demo", "pass", nodes=2, runtimeRef=REFERENCE))
        cluster.complete("demo")


def _names_the_gate(cluster: Cluster, runtime: dict[str, Any], *words: str) -> None:
    """Check what is said of a runtime and its TrainJobs, wherever their authors look."""
    cluster.apply(train_job("early", "pass", runtimeRef=REFERENCE))
    cluster.wait_for_state("early", "Blocked")
    warned = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(runtime)).stderr
    until(lambda: _lacks_nothing(_blocked(cluster), words), lambda: f"{words} in its condition: {_blocked(cluster)}")
    explained = cluster.trainer("explain", "early")
    assert explained.returncode == WAITS, explained.stderr
    assert _lacks_nothing(" ".join(explained.stdout.split()), words), explained.stdout
    if cluster.has_webhooks:
        assert _lacks_nothing(warned, words), warned
        refused = cluster.kubectl(
            "apply", "-f", "-", stdin=json.dumps(train_job("late", "pass", runtimeRef=REFERENCE)), check=False
        )
        assert refused.returncode == 1
        assert _lacks_nothing(refused.stderr, words), refused.stderr


def _blocked(cluster: Cluster) -> str:
    return str(cluster.condition("early", "Created").get("message", ""))


def _lacks_nothing(text: str, words: tuple[str, ...]) -> bool:
    return all(word in text for word in words)
