"""Runtime snapshots."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.framework.samples import runtime_object, train_job, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.snapshot import make_snapshot, open_snapshot, snapshot_key
from trainer.kube.objects import key_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def snapshot(runtime: Object | None = None) -> Object:
    """A snapshot of a runtime for the TrainJob demo."""
    return make_snapshot(train_job_object(), CLUSTER_TRAINING_RUNTIMES, runtime or runtime_object())


def test_what_is_kept() -> None:
    """The spec as it is stored, with fields that this code does not know, and enough to recognise the runtime."""
    runtime = runtime_object() | {"status": {"not": "kept"}}
    runtime["spec"]["newer"] = {"field": 1}
    runtime["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [{"manager": "kubectl"}]}

    taken = snapshot(runtime)

    assert key_of(taken) == snapshot_key(train_job())
    assert taken["immutable"] is True
    assert taken["metadata"]["ownerReferences"][0]["uid"] == "uid-of-demo"
    assert json.loads(taken["data"]["runtime"]) == {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "blueprint", "uid": "u", "resourceVersion": "7"},
        "spec": runtime["spec"],
    }
    assert open_snapshot(taken) == (CLUSTER_TRAINING_RUNTIMES, json.loads(taken["data"]["runtime"]))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param({}, "does not hold a runtime", id="no-key"),
        pytest.param({"runtime": "spec: {"}, "does not hold a runtime", id="not-json"),
        pytest.param({"runtime": "[]"}, "does not hold a runtime", id="a-list"),
        pytest.param({"runtime": '{"kind": "ClusterTrainingRuntime"}'}, "does not hold a runtime", id="no-spec"),
        pytest.param(
            {"runtime": '{"kind": "Pod", "metadata": {"name": "x"}, "spec": {}}'},
            "does not hold a runtime",
            id="other-kind",
        ),
        pytest.param(
            {"runtime": '{"kind": "ClusterTrainingRuntime", "spec": {}}'}, "does not hold a runtime", id="no-name"
        ),
    ],
)
def test_a_snapshot_that_cannot_be_used(data: Object, problem: str) -> None:
    """Somebody made it anew with other content: the error names the ConfigMap and the remedy."""
    with pytest.raises(BuildError) as caught:
        open_snapshot(snapshot() | {"data": data})
    assert str(caught.value) == (
        f"ConfigMap demo-runtime-snapshot data.runtime: Invalid value: {problem}; delete the ConfigMap, and a new "
        "snapshot of the runtime will be taken"
    )


def test_a_large_runtime_is_kept_without_indentation() -> None:
    """A runtime that fits into a ConfigMap must not fail to for the sake of its looks."""
    runtime = runtime_object()
    runtime["spec"]["large"] = [{"a": index} for index in range(50_000)]
    content = snapshot(runtime)["data"]["runtime"]
    assert "\n" not in content
    assert len(content) < 700_000
    assert open_snapshot(snapshot(runtime))[1]["spec"] == runtime["spec"]
