"""A sweep on the definitions of Kubeflow Trainer (Go), that of OptimizationJobs unmodified, with config/v1alpha1."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import audit
from e2e import released_manager as released
from e2e.cluster import Cluster
from e2e.progress_training import script
from e2e.released_cluster import USER, install, released_cluster
from e2e.sweeps.sweep import KIND, METRIC, assignment_of, curve_of, status_of, trials_of
from e2e.waiting import until
from trainer.kube.objects import is_condition_true

UPSTREAM = Path(__file__).parents[3] / "shared" / "peer" / "optimization" / "trainer.kubeflow.org_optimizationjobs.yaml"

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.skipif(not UPSTREAM.exists(), reason="the CRD of Kubeflow Trainer is not beside the checkout"),
    pytest.mark.timeout(300),
]
TRIAL = """
rate, kind = float(os.environ["KUBEFLOW_TRAINER_OPT_RATE"]), os.environ["KUBEFLOW_TRAINER_OPT_KIND"]
for step in (1, 2):
    say(currentStep=step, totalSteps=2, evalMetrics={"val_loss": (rate - 3) ** 2 + (kind == "a") + 1 / step})
"""
RATE = {"name": "rate", "searchSpace": {"uniform": {"min": "0.5", "max": "5"}}}
KINDS = {"name": "kind", "searchSpace": {"categorical": {"choices": ["a", "b"]}}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A namespace with a runtime."""
    with released_cluster(tmp_path_factory.mktemp("released")) as cluster:
        cluster.apply(yaml.load(UPSTREAM.read_text(), yaml.CSafeLoader))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=30s")
        cluster.configuration["progress"] = {"statusInterval": "200ms", "readInterval": "50ms"}
        install(cluster)
        node = released.replicated_job("node", ancestor="trainer")
        cluster.apply(released.runtime("plain", node, mlPolicy={"numNodes": 1}))
        yield replace(cluster, namespace="default")


def sweep(**spec: Any) -> dict[str, Any]:
    """An OptimizationJob."""
    trial = {"runtimeRef": {"name": "plain"}, "trainer": {"command": ["python", "-u", "-c", script(TRIAL)]}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "OptimizationJob",
        "metadata": {"name": "search", "namespace": "default"},
        "spec": {
            "objectives": [{"metric": METRIC, "direction": "Minimize"}],
            "searchAlgorithm": {"random": {"seed": 4}},
            "parameters": [RATE, KINDS],
            "numTrials": 6,
            "parallelTrials": 2,
            "trainJobTemplate": {"spec": trial},
            **spec,
        },
    }


def test_result(site: Cluster) -> None:
    """All trials end, the best is the result, the status is all that the definition keeps, and every right is there."""
    site.apply(sweep())

    def is_complete() -> bool:
        job = site.get("optimizationjob", "search") or {}
        assert not is_condition_true(job, "Failed"), job["status"]
        return is_condition_true(job, "Complete")

    until(is_complete, lambda: f"the sweep is complete: {status_of(site, 'search')}", timeout=180, pause=0.5)
    status, trials = status_of(site, "search"), trials_of(site, "search")
    assert sorted(trials) == [1, 2, 3, 4, 5, 6]
    last = {number: curve_of(trial)[-1] for number, trial in trials.items()}
    best = min(last, key=lambda number: last[number][1])
    found = [{"name": name, "value": value} for name, value in assignment_of(trials[best]).items()]
    assert status.keys() == {"conditions", "result"}
    assert status["result"] == {"trainJobName": f"search-trial-{best}", "parameters": found}
    requests = list(audit.requests_of_manager(site.kubeconfig.with_name("audit.log"), USER))
    assert [each for each in requests if each.is_refused] == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({"parallelTrials": 7}, "parallelTrials cannot exceed numTrials", id="parallel"),
        pytest.param(
            {"searchAlgorithm": {"grid": {}}},
            "Grid search requires all parameters to be Categorical; Uniform and LogUniform are not supported.",
            id="grid",
        ),
        pytest.param(
            {"objectives": [{"metric": "a"}, {"metric": "b"}]},
            "spec.objectives: Too many: 2: must have at most 1 items",
            id="two-objectives",
        ),
        pytest.param({"parameters": [RATE, RATE]}, 'spec.parameters[1]: Duplicate value: {"name":"rate"}', id="twice"),
        # The definition lets it pass, and the webhook does not.
        pytest.param(
            {"parameters": [{"name": "n", "searchSpace": {"uniform": {"min": "0.2", "max": "0.8", "type": "Int"}}}]},
            "spec.parameters[0].searchSpace.uniform",
            id="no-integer",
        ),
    ],
)
def test_refused(site: Cluster, spec: dict[str, Any], text: str) -> None:
    """What no sweep can be made of is refused, by the texts of the definition and by those of the webhook."""
    job = sweep(**spec)
    answer = site.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job), check=False)
    assert answer.returncode != 0
    assert text in answer.stderr
