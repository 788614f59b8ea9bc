"""Real TensorFlow: a MultiWorkerMirroredStrategy across nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from e2e.cluster import Cluster

EXAMPLE = Path(__file__).parents[1] / "examples" / "tensorflow-digits" / "trainjob.yaml"

pytestmark = pytest.mark.timeout(240)


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
