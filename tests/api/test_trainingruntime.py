"""Runtimes: what their schema cannot say."""

from __future__ import annotations

import pytest

from tests.api.samples import replicated_job, runtime_of, runtime_with
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from trainer.kube.objects import Object

KEYS = "keys must be names of letters, digits, -, _ and ., such as team or example.com/team"


def with_metadata(**metadata: object) -> Object:
    """A runtime with labels or annotations of its JobSet."""
    obj = runtime_of(replicated_job())
    obj["spec"]["template"]["metadata"] = metadata
    return obj


def with_job_labels(**labels: str) -> Object:
    """A runtime with labels of its Jobs."""
    obj = runtime_of(replicated_job())
    obj["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["metadata"] = {"labels": labels}
    return obj


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            with_metadata(labels={"a b": ""}),
            f'spec.template.metadata.labels: Invalid value: "a b": {KEYS}',
            id="label-of-the-jobset",
        ),
        pytest.param(
            with_metadata(annotations={"a b": ""}),
            f'spec.template.metadata.annotations: Invalid value: "a b": {KEYS}',
            id="annotation-of-the-jobset",
        ),
        pytest.param(
            with_job_labels(**{"-": "a"}),
            f'spec.template.spec.replicatedJobs[0].template.metadata.labels: Invalid value: "-": {KEYS}',
            id="label-of-a-job",
        ),
        pytest.param(
            runtime_with(resources={"limits": {"cpu": -1}}),
            "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.limits[cpu]: "
            "Invalid value: -1: must be greater than or equal to 0",
            id="pod",
        ),
    ],
)
def test_refused(obj: Object, message: str) -> None:
    """What would make a JobSet fail is refused in the runtime, of either kind."""
    for model in (ClusterTrainingRuntime, TrainingRuntime):
        with pytest.raises(InvalidObjectError) as caught:
            model.from_object(obj | {"kind": model.__name__}, strict=True)
        assert str(caught.value) == message
