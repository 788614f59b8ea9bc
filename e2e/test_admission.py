"""Admission on the cluster that `trainer up` makes, as people meet it who use kubectl."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster, train_job
from e2e.kubectl import BIN
from e2e.manager import Manager
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]

HELLO = "print('hello')"
CONFIGURATIONS = (
    "validatingwebhookconfiguration/validator.trainer.kubeflow.org",
    "mutatingwebhookconfiguration/defaulter.trainer.kubeflow.org",
)


def run(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A subcommand of `trainer` for a user with a state directory of their own."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    command = [str(BIN / "trainer"), *arguments]
    environment |= {"XDG_STATE_HOME": str(state)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """What `trainer up` has started, without a moment's rest."""
    state = tmp_path_factory.mktemp("state")
    try:
        up = run(state, "up")
        assert up.returncode == 0, up.stdout + up.stderr
        kubeconfig = state / "trainer" / "kubeconfig"
        # Both halves run in the background; this manager is never started.
        manager = Manager([], state / "manager.log")
        yield Cluster(
            kubeconfig, state / "trainer" / "manager.kubeconfig", is_local=True, pod_network="", manager=manager
        )
    finally:
        run(state, "down")


def apply(cluster: Cluster, *objects: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """kubectl apply -f -, whatever comes of it."""
    return cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects), check=False)


def patch(cluster: Cluster, kind: str, name: str, spec: str) -> subprocess.CompletedProcess[str]:
    """kubectl patch of the spec, whatever comes of it."""
    return cluster.kubectl("patch", kind, name, "--type=merge", "-p", f'{{"spec": {spec}}}', check=False)


def runtime(name: str, **policy: Any) -> dict[str, Any]:
    """A ClusterTrainingRuntime."""
    containers = [{"name": "trainer", "image": "image"}]
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": policy,
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}},
        },
    }


def test_works_at_once(cluster: Cluster) -> None:
    """The first request after `trainer up` is admitted, with defaults, and the job runs to its end."""
    job = train_job("first", HELLO)
    job["spec"]["trainer"]["numProcPerNode"] = 1

    applied = apply(cluster, job)

    assert (applied.returncode, applied.stderr) == (0, "")
    stored = cluster.get("trainjob", "first") or {}
    assert stored["spec"]["trainer"]["numProcPerNode"] == "1"
    assert stored["spec"]["managedBy"] == "kubeflow.org/trainjob-controller"
    cluster.wait_for_condition("first", "Complete")


def test_refusal(cluster: Cluster) -> None:
    """What could not be built is refused with field, value and rule, and nothing is created."""
    unknown = train_job("refused", HELLO, podSpecOverrides=[{"targetJobs": [{"name": "nodes"}]}])
    too_many = train_job("refused", HELLO, nodes=100_001)

    for job, reason in (
        (unknown, 'spec.podSpecOverrides[0].targetJobs[0].name: Not found: "nodes": '),
        (too_many, "spec.trainer.numNodes: "),
    ):
        refused = apply(cluster, job)
        assert refused.returncode == 1
        assert reason in refused.stderr
    assert cluster.get("trainjob", "refused") is None


def test_warnings(cluster: Cluster) -> None:
    """What its author should know reaches the terminal although the job is accepted."""
    job = train_job("waiting", HELLO, runtime="not-yet", suspend=True)
    job["spec"]["trainer"]["command"] = ["echo a && echo b"]

    applied = apply(cluster, job)

    assert applied.returncode == 0
    assert "Warning: spec.runtimeRef.name: there is no ClusterTrainingRuntime not-yet yet" in applied.stderr
    created = apply(cluster, runtime("not-yet"))
    assert created.returncode == 0, created.stderr
    resumed = patch(cluster, "trainjob", "waiting", '{"suspend": false}')
    assert "Warning: spec.trainer.command: is not run by a shell, so && is passed on as a plain word" in resumed.stderr


def test_runtime_and_train_job_in_one_go(cluster: Cluster) -> None:
    """A TrainJob that is applied together with its runtime is checked against it, without a warning."""
    job = train_job("together", HELLO, runtime="fresh", suspend=True)
    job["spec"]["trainer"]["numProcPerNode"] = 4

    refused = apply(cluster, runtime("fresh"), job)

    assert "clustertrainingruntime.trainer.kubeflow.org/fresh created" in refused.stdout
    assert "spec.trainer.numProcPerNode: " in refused.stderr
    assert "Warning" not in refused.stderr


def test_immutable_runtime(cluster: Cluster) -> None:
    """The spec of a runtime cannot be changed, its labels can, and a TrainJob of a deprecated one is warned."""
    assert apply(cluster, runtime("old")).returncode == 0

    changed = patch(cluster, "clustertrainingruntime", "old", '{"mlPolicy": {"numNodes": 7}}')
    labelled = cluster.kubectl("label", "clustertrainingruntime", "old", "trainer.kubeflow.org/support=deprecated")
    job = apply(cluster, train_job("late", HELLO, runtime="old", suspend=True))

    assert changed.returncode == 1
    assert "make a new version" in changed.stderr
    assert labelled.returncode == 0
    assert "Warning: spec.runtimeRef.name: ClusterTrainingRuntime old is deprecated" in job.stderr


def test_changes_while_suspended(cluster: Cluster) -> None:
    """A suspended job takes new places for its pods, which reach the JobSet; its image does not change any more."""
    assert apply(cluster, train_job("queued", HELLO, suspend=True)).returncode == 0
    until(lambda: cluster.state("queued") == "Suspended", "the job is suspended")
    selector = '{"targetJobs": [{"name": "node"}], "nodeSelector": {"kubernetes.io/os": "linux"}}'

    moved = patch(cluster, "trainjob", "queued", f'{{"podSpecOverrides": [{selector}], "labels": {{"team": "a"}}}}')
    rebuilt = patch(cluster, "trainjob", "queued", '{"trainer": {"image": "other"}}')
    renamed = patch(cluster, "trainjob", "queued", '{"runtimeRef": {"name": "jax-distributed"}}')

    assert moved.returncode == 0, moved.stderr
    assert "spec.trainer: Forbidden: " in rebuilt.stderr
    assert (
        "spec.runtimeRef: Forbidden: is immutable once the Jobs have been created: delete the TrainJob"
        in renamed.stderr
    )

    def placed() -> bool:
        jobset = cluster.get("jobset", "queued") or {}
        (node,) = jobset["spec"]["replicatedJobs"]
        pod = node["template"]["spec"]["template"]
        labels: dict[str, str] = pod["metadata"]["labels"]
        node_selector: dict[str, str] = pod["spec"].get("nodeSelector") or {}
        return node_selector == {"kubernetes.io/os": "linux"} and labels["team"] == "a"

    until(placed, "the JobSet has the selector and the label")
    assert patch(cluster, "trainjob", "queued", '{"suspend": false}').returncode == 0
    cluster.wait_for_condition("queued", "Complete")
    late = patch(cluster, "trainjob", "queued", '{"labels": {"team": "b"}}')
    assert "spec.labels: Forbidden: can only be changed while the TrainJob is suspended" in late.stderr
    assert cluster.kubectl("delete", "trainjob", "queued").returncode == 0


def test_without_webhooks_the_condition_tells(cluster: Cluster) -> None:
    """With the webhooks switched off the same mistake is stored, shown by the condition, and becomes no JobSet."""
    saved = [cluster.kubectl("get", name, "-o", "yaml").stdout for name in CONFIGURATIONS]
    cluster.kubectl("delete", *CONFIGURATIONS)
    try:
        job = train_job("unchecked", HELLO)
        job["spec"]["trainer"]["numProcPerNode"] = 4
        assert apply(cluster, job).returncode == 0
        cluster.kubectl("wait", "--for=condition=Created=False", "trainjob/unchecked", "--timeout=60s")
        conditions = (cluster.get("trainjob", "unchecked") or {})["status"]["conditions"]
        (created,) = [condition for condition in conditions if condition["type"] == "Created"]
        assert created["reason"] == "JobsBuildFailed"
        assert "spec.trainer.numProcPerNode: " in created["message"]
        assert cluster.get("jobset", "unchecked") is None
    finally:
        for text in saved:
            without_bundle = re.sub(r"^ *caBundle:.*\n", "", text, flags=re.MULTILINE)
            cluster.kubectl("create", "-f", "-", stdin=without_bundle)
    until(lambda: "caBundle" in cluster.kubectl("get", CONFIGURATIONS[0], "-o", "yaml").stdout, "the CA is back")
    until(lambda: "caBundle" in cluster.kubectl("get", CONFIGURATIONS[1], "-o", "yaml").stdout, "the CA is back")
    healed = patch(cluster, "trainjob", "unchecked", '{"trainer": {"numProcPerNode": 1}}')
    assert healed.returncode == 0, healed.stderr
    cluster.wait_for_condition("unchecked", "Complete")
