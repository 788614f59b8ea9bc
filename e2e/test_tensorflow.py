"""Real TensorFlow: a MultiWorkerMirroredStrategy and a ParameterServerStrategy across nodes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from e2e.cluster import Cluster

EXAMPLE = Path(__file__).parents[1] / "examples" / "tensorflow-digits" / "trainjob.yaml"
SAMPLE = Path(__file__).parents[1] / "config" / "samples" / "tensorflow_parameter_server.yaml"

pytestmark = pytest.mark.timeout(300)


def test_nodes_train_together(cluster: Cluster) -> None:
    """The strategy of two nodes finds both in TF_CONFIG, and they train to more than 90 % accuracy."""
    if not cluster.is_local:
        pytest.skip("needs an image with TensorFlow and scikit-learn, which the example does not name")
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"workers listen on one port of all addresses, and pods share them here ({cluster.pod_network})")
    cluster.apply(*yaml.safe_load_all(EXAMPLE.read_text()))

    state = cluster.wait_for_state("tensorflow-digits", "Complete", "Failed", timeout=180)

    selector = "jobset.sigs.k8s.io/jobset-name=tensorflow-digits"
    log = cluster.kubectl("logs", "--selector", selector, "--tail=-1").stdout
    assert state == "Complete", log
    assert sorted(re.findall(r"^node \d of \d$", log, re.MULTILINE)) == ["node 0 of 2", "node 1 of 2"]
    (accuracy,) = re.findall(r"test accuracy: ([\d.]+) %", log)
    assert float(accuracy) > 90


def test_parameter_servers(cluster: Cluster) -> None:
    """The steps that a chief gives to two workers are counted on the server, and its end is that of the training."""
    if not cluster.is_local:
        pytest.skip("needs an image with TensorFlow, which the runtime names but this cluster may have to pull")
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"tasks listen on one port of all addresses, and pods share them here ({cluster.pod_network})")
    job = yaml.safe_load(SAMPLE.read_text())
    targets = [{"name": name} for name in ("node", "chief", "ps")]
    mount = {"name": "trainer", "volumeMounts": [{"name": "work", "mountPath": "/workspace"}]}
    volumes = [{"name": "work", "emptyDir": {}}]
    job["spec"]["podSpecOverrides"] = [{"targetJobs": targets, "containers": [mount], "volumes": volumes}]
    cluster.apply(job)
    name = job["metadata"]["name"]

    state = cluster.wait_for_state(name, "Complete", "Failed", timeout=240)

    selector = f"jobset.sigs.k8s.io/jobset-name={name},jobset.sigs.k8s.io/replicatedjob-name=chief"
    log = cluster.kubectl("logs", "--selector", selector, "--tail=-1").stdout
    assert state == "Complete", log
    assert "chief 0 of 1" in log
    assert re.search(r"steps: 10 on /job:ps/replica:0/task:0", log)
