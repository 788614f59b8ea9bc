"""What Kubeflow Trainer (Go) made of some TrainJobs of v1alpha1, beside what ours makes of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework import Component
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.client import decoded

PEER = Path(__file__).parents[3] / "shared" / "peer"
RECORDINGS = sorted(PEER.glob("*.json"))

pytestmark = pytest.mark.skipif(
    not RECORDINGS, reason="the recordings of Kubeflow Trainer (Go) are not beside the checkout"
)

DEFAULTS = {
    "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
    "enableDNSHostnames": True,
    "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    "successPolicy": {"operator": "All"},
    "groupName": "default",
    "completionMode": "Indexed",
    "restartPolicy": "OnFailure",
    "resources": {},
    "metadata": {},
}
"""What JobSet and the API server add."""


def runtimes() -> dict[str, Object]:
    """The shipped runtimes of Kubeflow Trainer (Go)."""
    files = sorted(PEER.glob("upstream/runtimes/**/*.yaml"))
    objects = [obj for file in files for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader)]
    return {name_of(obj): obj for obj in objects if obj and obj["kind"] == CLUSTER_TRAINING_RUNTIMES.kind}


def made_by_us(given: list[Object]) -> list[Object]:
    """The objects that a TrainJob becomes."""
    train_job = copy.deepcopy(next(obj for obj in given if obj["kind"] == "TrainJob"))
    train_job["metadata"]["namespace"] = "default"
    own = (obj for obj in given if obj["kind"] != "TrainJob")
    runtime = next(own, None) or runtimes()[train_job["spec"]["runtimeRef"]["name"]]
    resource = CLUSTER_TRAINING_RUNTIMES if runtime["kind"] == CLUSTER_TRAINING_RUNTIMES.kind else TRAINING_RUNTIMES
    found = read_runtime(resource, decoded(runtime))
    return [
        complete(component) for component in pipeline("v1alpha1").build(TrainJob.from_object(decoded(train_job)), found)
    ]


def complete(component: Component) -> Object:
    """The object, with the lengths of what is generated in place of it, as in the recordings."""
    if component.generated is None:
        return component.object
    data = component.generated()["data"]
    return component.object | {"data": {name: f"<{len(value)} chars>" for name, value in data.items()}}


def differences(theirs: Any, ours: Any, path: str) -> Iterator[str]:
    """The paths at which two values differ, except where the other has a default."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(theirs.keys() | ours.keys()):
            if name in theirs and name not in ours and DEFAULTS.get(name) == theirs[name]:
                continue
            yield from differences(theirs.get(name), ours.get(name), f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif theirs != ours:
        yield path


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda file: file.stem)
def test_the_same_objects(recording: Path) -> None:
    """Each object is the same, and none is missing but the snapshot of the runtime, which no plugin builds."""
    content = json.loads(recording.read_text())
    made = {(obj["kind"], name_of(obj)): obj for obj in content["made"]}
    (train_job,) = (name for kind, name in made if kind == "TrainJob")
    ours = made_by_us(content["given"])
    built = {(obj["kind"], name_of(obj)) for obj in ours}
    assert made.keys() - built == {("TrainJob", train_job), ("ConfigMap", f"{train_job}-runtime-snapshot")}
    for obj in ours:
        theirs = made[obj["kind"], name_of(obj)]
        for part in sorted((theirs.keys() | obj.keys()) - {"metadata", "status"}):
            assert [*differences(theirs.get(part), obj.get(part), f"{obj['kind']}.{part}")] == []
