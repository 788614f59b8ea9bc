"""What the released Trainer made of some TrainJobs of v1alpha1, beside what ours makes of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.api.v1alpha1.client import decoded
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.objects import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object

PEER = Path(__file__).parents[3] / "shared" / "peer"
RECORDINGS = sorted(PEER.glob("*.json"))

pytestmark = pytest.mark.skipif(
    not RECORDINGS, reason="the recordings of the released Trainer are not beside the checkout"
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

NODE, LAUNCHER = (f"JobSet.spec.replicatedJobs[{index}].template.spec.template" for index in (0, 1))
KEYS = {
    "volumes[0].secret.secretName": "has a hash, so that another TrainJob of the name has other keys",
    "volumes[0].secret.defaultMode": "ssh refuses keys that a group may read",
    "volumes[0].secret.items[0].mode": "the same",
    "containers[0].volumeMounts[0].readOnly": "nobody writes there",
}
MPI = {f"{pods}.spec.{path}": reason for pods in (NODE, LAUNCHER) for path, reason in KEYS.items()} | {
    f"{LAUNCHER}.spec.containers[0].volumeMounts[1].readOnly": "nobody writes there",
    f"{LAUNCHER}.metadata.annotations": "says whose log has the progress",
    f"{LAUNCHER}.spec.containers[0].env": "also runs as root, without host keys, and with Open MPI 5",
    "ConfigMap.data.hostfile": "the launcher comes first, so that rank 0 is where the log is read",
    "Secret": "has a hash in its name",
}
DIFFERENCES: dict[str, dict[str, str]] = {"mpi-deepspeed": MPI}
"""Differences in which a user loses nothing, by recording and path, each with its reason."""


def runtimes() -> dict[str, Object]:
    """The shipped runtimes of the released Trainer."""
    files = sorted(PEER.glob("upstream/runtimes/**/*.yaml"))
    objects = [obj for file in files for obj in yaml.safe_load_all(file.read_text())]
    return {name_of(obj): obj for obj in objects if obj and obj["kind"] == CLUSTER_TRAINING_RUNTIMES.kind}


def made_by_us(given: list[Object]) -> list[Object]:
    """The objects that a TrainJob becomes."""
    train_job = copy.deepcopy(next(obj for obj in given if obj["kind"] == "TrainJob"))
    train_job["metadata"]["namespace"] = "default"
    own = (obj for obj in given if obj["kind"] != "TrainJob")
    runtime = next(own, None) or runtimes()[train_job["spec"]["runtimeRef"]["name"]]
    resource = CLUSTER_TRAINING_RUNTIMES if runtime["kind"] == CLUSTER_TRAINING_RUNTIMES.kind else TRAINING_RUNTIMES
    found = read_runtime(resource, decoded(runtime))
    return [component.object for component in pipeline().build(TrainJob.from_object(decoded(train_job)), found)]


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
    """Each object is the same, but for the listed differences."""
    content = json.loads(recording.read_text())
    made = {(obj["kind"], name_of(obj)): obj for obj in content["made"]}
    found: set[str] = set()
    for obj in made_by_us(content["given"]):
        theirs = made.get((obj["kind"], name_of(obj)))
        if theirs is None:
            found.add(obj["kind"])
            continue
        for part in sorted((theirs.keys() | obj.keys()) - {"metadata", "status"}):
            found |= {*differences(theirs.get(part), obj.get(part), f"{obj['kind']}.{part}")}
    assert found == set(DIFFERENCES.get(recording.stem, {}))
