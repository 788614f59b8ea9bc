"""Claims for checkpoints: what their annotation may say, and what a JobSet was given."""

from __future__ import annotations

import pytest

from tests.api.samples import runtime, train_job
from trainer.api.checkpoints import (
    CHECKPOINTS,
    VOLUME,
    Claim,
    check_checkpoints_annotation,
    mounted_directory,
    parse_claim,
)
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.kube.objects import Object

FORM = "must be CLAIM or CLAIM/PATH, such as checkpoints/team-a"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        pytest.param("data", Claim("data", ""), id="claim"),
        pytest.param("data.v2/team-a/Runs_1", Claim("data.v2", "team-a/Runs_1"), id="path"),
        pytest.param(f"data/{'a/' * 511}aa", Claim("data", f"{'a/' * 511}aa"), id="longest-path"),
    ],
)
def test_claims(text: str, claim: Claim) -> None:
    """A claim is read, and written as it was."""
    assert parse_claim(text) == claim
    assert str(claim) == text
    assert not list(check_checkpoints_annotation({CHECKPOINTS: text}, "a"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("Data", "the name of a claim must consist of lower-case letters", id="case"),
        pytest.param("/data", "the name of a claim must", id="absolute"),
        pytest.param("a" * 254, "at most 253 characters", id="long-claim"),
        pytest.param("data/../other", "without empty parts, . and ..", id="upwards"),
        pytest.param("data/.", "without empty parts, . and ..", id="dot"),
        pytest.param("data/", "without empty parts, . and ..", id="empty-path"),
        pytest.param("data//a", "without empty parts, . and ..", id="empty-part"),
        pytest.param("data/$(HOME)", "letters, digits and ._=@+-", id="variable"),
        pytest.param("data/a\n", "letters, digits and ._=@+-", id="line-break"),
        pytest.param(f"data/{'a' * 256}", "at most 255 of them", id="long-part"),
        pytest.param(f"data/{'a/' * 512}a", "at most 1024 characters", id="long-path"),
    ],
)
def test_refused(text: str, rule: str) -> None:
    """What names no claim is refused with the field, the form and the rule that it breaks."""
    (error,) = check_checkpoints_annotation({CHECKPOINTS: text}, "metadata.annotations")
    assert error.field == f"metadata.annotations[{CHECKPOINTS}]"
    assert error.detail.startswith(FORM)
    assert rule in error.detail


@pytest.mark.parametrize("annotations", [None, {}, {CHECKPOINTS: ""}, {"other": "/"}])
def test_none(annotations: dict[str, str] | None) -> None:
    """Without the annotation, or with an empty one, there is no claim."""
    assert not list(check_checkpoints_annotation(annotations, "a"))


WRONG = {"annotations": {CHECKPOINTS: "a/.."}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"metadata": {"name": "demo", **WRONG}}, "metadata.annotations", id="trainjob"),
        pytest.param({"spec": WRONG}, "spec.annotations", id="jobset"),
        pytest.param({"spec": {"jobSetMetadata": WRONG}}, "spec.jobSetMetadata.annotations", id="jobset-alone"),
    ],
)
def test_of_a_trainjob(changes: Object, field: str) -> None:
    """A TrainJob with a wrong claim is refused."""
    obj = train_job()
    obj |= {name: obj[name] | value for name, value in changes.items()}
    with pytest.raises(InvalidObjectError, match=rf"{field}\[{CHECKPOINTS}\]".replace(".", r"\.")):
        TrainJob.from_object(obj, strict=True)


def test_of_a_runtime() -> None:
    """So is a runtime."""
    obj = runtime()
    obj["spec"]["template"]["metadata"] = WRONG
    with pytest.raises(InvalidObjectError, match=r"spec\.template\.metadata\.annotations"):
        ClusterTrainingRuntime.from_object(obj, strict=True)


MOUNT: Object = {"name": VOLUME, "mountPath": "/checkpoints", "subPath": "team-a/demo-1"}
OF_CLAIM: Object = {"name": VOLUME, "persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    ("mounts", "volumes", "claim"),
    [
        pytest.param([MOUNT], [OF_CLAIM], Claim("data", "team-a/demo-1"), id="mounted"),
        pytest.param([MOUNT], [{"name": VOLUME, "emptyDir": {}}], None, id="no-claim"),
        pytest.param([{"name": VOLUME, "mountPath": "/all"}], [OF_CLAIM], None, id="all-of-it"),
        pytest.param([], [OF_CLAIM], None, id="not-mounted"),
        pytest.param(None, None, None, id="nothing"),
    ],
)
def test_mounted(mounts: list[Object] | None, volumes: list[Object] | None, claim: Claim | None) -> None:
    """The directory of a JobSet is the one that its pods mount."""
    pod = {"volumes": volumes, "containers": [{"name": "sidecar"}, {"name": "node", "volumeMounts": mounts}]}
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    assert mounted_directory({"spec": {"replicatedJobs": [{"name": "first"}, job]}}) == claim
