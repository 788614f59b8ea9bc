"""Files in place of a cluster."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.documents import Document
from trainer.cli.offline.workspace import Workspace
from trainer.kube.objects import Object


def test_objects_are_as_admission_leaves_them() -> None:
    """Defaults are set, and a name is made up where the server would."""
    obj = train_job_object(trainer={"numProcPerNode": 2}) | {"metadata": {"generateName": "demo-", "namespace": "a"}}
    (document,) = Workspace([Document(TRAIN_JOBS, obj, "job.yaml, document 1")]).documents

    assert document.place == "job.yaml, document 1"
    assert document.obj["metadata"] == {"generateName": "demo-", "name": "demo-xxxxx", "namespace": "a"}
    assert document.obj["spec"]["trainer"]["numProcPerNode"] == "2"


@pytest.mark.parametrize(
    ("resource", "obj", "errors"),
    [
        pytest.param(CLUSTER_TRAINING_RUNTIMES, runtime_object(), [], id="runtime"),
        pytest.param(
            CLUSTER_TRAINING_RUNTIMES,
            runtime_object(policy={"numNodes": 0}),
            ["spec.mlPolicy.numNodes"],
            id="runtime that nobody can use",
        ),
    ],
)
def test_review(resource: Any, obj: Object, errors: list[str]) -> None:
    """The checks are those of admission."""
    workspace = Workspace([Document(resource, obj)])

    review = anyio.run(workspace.review, workspace.documents[0])

    assert [error.field for error in review.errors] == errors
