"""TrainJobs: what their schema cannot say."""

from __future__ import annotations

import pytest

from tests.api.samples import train_job
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import State
from trainer.kube.objects import Object

KEYS = "keys must be names of letters, digits, -, _ and ., such as team or example.com/team"
TWO_VALUES = [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
ONE_VALUE = "Invalid value: may not be specified when value is not empty"


def overridden(**members: object) -> Object:
    """A TrainJob with an override."""
    return train_job(podSpecOverrides=[{"targetJobs": [{"name": "node"}]} | members])


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            train_job(annotations={"/a": ""}), f'spec.annotations: Invalid value: "/a": {KEYS}', id="annotation-key"
        ),
        pytest.param(
            train_job(datasetConfig={"env": TWO_VALUES}),
            f"spec.datasetConfig.env[0].valueFrom: {ONE_VALUE}",
            id="dataset-env",
        ),
        pytest.param(
            train_job(modelConfig={"output": {"env": TWO_VALUES}}),
            f"spec.modelConfig.output.env[0].valueFrom: {ONE_VALUE}",
            id="model-env",
        ),
        pytest.param(
            train_job(trainer={"resourcesPerNode": {"limits": {"gpu": 1}}}),
            'spec.trainer.resourcesPerNode.limits[gpu]: Invalid value: "gpu": '
            "must be a standard resource (cpu, memory ...) or have a domain: nvidia.com/gpu",
            id="resource-without-domain",
        ),
        pytest.param(
            overridden(initContainers=[{"name": "a", "env": TWO_VALUES}]),
            f"spec.podSpecOverrides[0].initContainers[0].env[0].valueFrom: {ONE_VALUE}",
            id="override-env",
        ),
        pytest.param(
            overridden(containers=[{"name": "a", "envFrom": [{}]}]),
            "spec.podSpecOverrides[0].containers[0].envFrom[0]: Invalid value: "
            "must have exactly one of configMapRef, secretRef; it has none",
            id="override-env-from",
        ),
        pytest.param(
            overridden(nodeSelector={"": "a"}),
            f'spec.podSpecOverrides[0].nodeSelector: Invalid value: "": {KEYS}',
            id="override-node-selector",
        ),
        pytest.param(
            overridden(tolerations=[{"operator": "Exists", "value": "v"}]),
            'spec.podSpecOverrides[0].tolerations[0].value: Invalid value: "v": must be empty when operator is Exists',
            id="override-toleration",
        ),
    ],
)
def test_refused(obj: Object, message: str) -> None:
    """What would make the pods of a TrainJob fail is refused where it was written."""
    with pytest.raises(InvalidObjectError) as caught:
        TrainJob.from_object(obj, strict=True)
    assert str(caught.value) == message
    assert [str(error) for error in TrainJob.from_object(obj).semantic_errors()] == [message]


def test_storage_settings_have_paths() -> None:
    """Datasets and models are found together with where they stand."""
    spec = TrainJob.from_object(
        train_job(datasetConfig={"storageUri": "s3://d"}, modelConfig={"output": {"storageUri": "s3://o"}})
    ).spec
    assert [(path, settings.storage_uri) for path, settings in spec.storage_settings()] == [
        ("spec.datasetConfig", "s3://d"),
        ("spec.modelConfig.output", "s3://o"),
    ]


@pytest.mark.parametrize(
    ("state", "read"),
    [pytest.param("Running", State.RUNNING, id="known"), pytest.param("Resting", None, id="of-a-later-version")],
)
def test_states(state: str, read: State | None) -> None:
    """One that a later version has written is none: it keeps nothing from being done."""
    status = TrainJob.from_object(train_job() | {"status": {"state": state}}).status
    assert status is not None
    assert status.state is read
