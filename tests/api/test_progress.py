"""Annotations about progress: what admission refuses, and how they are read where nobody has checked them."""

from __future__ import annotations

import pytest

from tests.api.samples import pod_of, replicated_job, runtime, runtime_of, train_job
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metric_curve import CURVE_OF
from trainer.api.progress import (
    CONTAINER,
    MONITORING,
    PRIMARY_POD,
    STALL_SECONDS,
    check_progress_annotations,
    monitoring_enabled,
    stall_seconds,
)
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.kube.objects import Object

BOOLEAN = 'supported values: "true", "false"'
NAME = (
    "must consist of lower-case letters, digits and -, and start and end with a letter or digit, "
    "with at most 63 characters"
)
METRIC = "must be the name of a metric: 1 to 64 printable characters"
SECONDS = "must be a number of seconds, such as 600, with at most 9 digits before the point; 0 stands for never"


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param(None, id="none"),
        pytest.param({}, id="empty"),
        pytest.param({"trainer.kubeflow.org/other": "anything", "stall-seconds": "x"}, id="others"),
        *(
            pytest.param({key: value}, id=f"{key.partition('/')[2]}-{value}")
            for key in (MONITORING, PRIMARY_POD)
            for value in ("true", "false")
        ),
        *(pytest.param({CURVE_OF: value}, id=f"curve-{len(value)}") for value in ("val_loss", "mAP @ 0.5", "ä" * 64)),
        *(pytest.param({CONTAINER: value}, id=f"container-{len(value)}") for value in ("a", "node-0", "a" * 63)),
        *(
            pytest.param({STALL_SECONDS: value}, id=f"stall-{value}")
            for value in ("0", "600", "0.5", "0600", "999999999.25")
        ),
    ],
)
def test_accepted(annotations: dict[str, str] | None) -> None:
    """Values that mean something, and annotations of others, are accepted."""
    assert not list(check_progress_annotations(annotations, "metadata.annotations"))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        pytest.param(MONITORING, "no", f'Unsupported value: "no": {BOOLEAN}', id="monitoring-no"),
        pytest.param(MONITORING, "", f'Unsupported value: "": {BOOLEAN}', id="monitoring-empty"),
        pytest.param(PRIMARY_POD, "1", f'Unsupported value: "1": {BOOLEAN}', id="primary-pod"),
        pytest.param(CONTAINER, "", f'Invalid value: "": {NAME}', id="container-empty"),
        pytest.param(CONTAINER, "A", f'Invalid value: "A": {NAME}', id="container-case"),
        pytest.param(CONTAINER, "a\n", f'Invalid value: "a\\n": {NAME}', id="container-line-break"),
        pytest.param(CONTAINER, "a" * 64, f'Invalid value: "{"a" * 64}": {NAME}', id="container-long"),
        pytest.param(CURVE_OF, "", f'Invalid value: "": {METRIC}', id="curve-empty"),
        pytest.param(CURVE_OF, "a\n", f'Invalid value: "a\\n": {METRIC}', id="curve-line-break"),
        pytest.param(CURVE_OF, "a" * 65, f'Invalid value: "{"a" * 65}": {METRIC}', id="curve-long"),
        *(
            pytest.param(STALL_SECONDS, value, f'Invalid value: "{shown}": {SECONDS}', id=f"stall-{value!r}")
            for value, shown in (
                ("", ""), ("-1", "-1"), ("10m", "10m"), ("1e3", "1e3"), ("inf", "inf"), ("NaN", "NaN"), (".5", ".5"),
                ("1.", "1."), (" 600", " 600"), ("600\n", "600\\n"), ("1_000", "1_000"), ("1000000000", "1000000000"),
                ("٦", "٦"),
            )
        ),
    ],
)  # fmt: skip
def test_refused(key: str, value: str, message: str) -> None:
    """Values that mean nothing are refused, with the annotation, the value and the rule."""
    [error] = check_progress_annotations({key: value}, "spec.annotations")
    assert str(error) == f"spec.annotations[{key}]: {message}"


def annotated_job() -> Object:
    return train_job() | {"metadata": {"name": "demo", "annotations": {MONITORING: "off"}}}


def annotated_pod() -> Object:
    obj = runtime()
    pod_of(obj)["metadata"] = {"annotations": {PRIMARY_POD: "yes"}}
    return obj


@pytest.mark.parametrize(
    ("model", "obj", "field"),
    [
        pytest.param(TrainJob, annotated_job(), f"metadata.annotations[{MONITORING}]", id="train-job"),
        pytest.param(
            TrainJob, train_job(annotations={CONTAINER: "A"}), f"spec.annotations[{CONTAINER}]", id="train-job-jobset"
        ),
        pytest.param(
            TrainJob,
            train_job(
                podSpecOverrides=[
                    {"targetJobs": [{"name": "node"}], "metadata": {"annotations": {STALL_SECONDS: "10m"}}}
                ]
            ),
            f"spec.podSpecOverrides[0].metadata.annotations[{STALL_SECONDS}]",
            id="train-job-override",
        ),
        pytest.param(
            ClusterTrainingRuntime,
            runtime(
                template={
                    "metadata": {"annotations": {STALL_SECONDS: "-1"}},
                    "spec": {"replicatedJobs": [replicated_job()]},
                }
            ),
            f"spec.template.metadata.annotations[{STALL_SECONDS}]",
            id="runtime-jobset",
        ),
        pytest.param(
            ClusterTrainingRuntime,
            runtime_of(
                replicated_job()
                | {"template": replicated_job()["template"] | {"metadata": {"annotations": {CONTAINER: "a_b"}}}}
            ),
            f"spec.template.spec.replicatedJobs[0].template.metadata.annotations[{CONTAINER}]",
            id="runtime-job",
        ),
        pytest.param(
            ClusterTrainingRuntime,
            annotated_pod(),
            f"spec.template.spec.replicatedJobs[0].template.spec.template.metadata.annotations[{PRIMARY_POD}]",
            id="runtime-pod",
        ),
    ],
)
def test_checked_wherever_they_may_stand(
    model: type[TrainJob | ClusterTrainingRuntime], obj: Object, field: str
) -> None:
    """TrainJobs and runtimes are refused where they are written; what is stored already can be read all the same."""
    with pytest.raises(InvalidObjectError) as caught:
        model.from_object(obj, strict=True)
    assert [error.field for error in caught.value.errors] == [field]
    assert model.from_object(obj)


@pytest.mark.parametrize(
    ("annotations", "enabled"),
    [
        pytest.param({}, True, id="nothing-said"),
        pytest.param({MONITORING: "false"}, False, id="false"),
        pytest.param({MONITORING: " False"}, False, id="false-odd"),
        pytest.param({MONITORING: "maybe"}, True, id="odd"),
    ],
)
def test_monitoring_enabled(annotations: dict[str, str], enabled: bool) -> None:
    """Only false switches it off, also where someone has written it differently and no webhook was there."""
    assert monitoring_enabled(annotations) is enabled


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [
        pytest.param({}, None, id="nothing-said"),
        pytest.param({STALL_SECONDS: "0"}, 0.0, id="never"),
        pytest.param({STALL_SECONDS: "1.5"}, 1.5, id="fraction"),
    ],
)
def test_stall_seconds(annotations: dict[str, str], seconds: float | None) -> None:
    """0 differs from an absence, since it takes precedence over the configuration."""
    assert stall_seconds(annotations) == seconds
