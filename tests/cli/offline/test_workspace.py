"""Files in place of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.configurations import write
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.cli.documents import Document
from trainer.cli.offline.workspace import Workspace
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError
from trainer.kube.errors import ConfigurationError
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.plugins import BUILT_IN


def config_map(name: str, **labels: str) -> Object:
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels}}


def train_job(**ref: str) -> TrainJob:
    return TrainJob.from_object(train_job_object(runtimeRef=ref))


def test_plugins_read_the_files() -> None:
    """What plugins ask about the cluster is answered from the files; nothing has been made yet."""
    workspace = Workspace(
        [Document(CONFIG_MAPS, config_map("a", app="x")), Document(CONFIG_MAPS, config_map("b", app="y"))]
    )

    found = workspace.reader.get(CONFIG_MAPS, ObjectKey("default", "a"))
    assert found is not None
    assert name_of(found) == "a"
    assert workspace.reader.get(SECRETS, ObjectKey("default", "a")) is None
    assert [name_of(obj) for obj in workspace.reader.list(CONFIG_MAPS, "default", {"app": "y"})] == ["b"]


def test_runtimes() -> None:
    """A runtime is that of the files, of either kind, else the one that we ship; else it is not found."""
    own = runtime_object() | {"metadata": {"name": "plain"}}
    namespaced = own | {"kind": "TrainingRuntime", "metadata": {"name": "torch-distributed", "namespace": "default"}}
    workspace = Workspace([Document(CLUSTER_TRAINING_RUNTIMES, own), Document(TRAINING_RUNTIMES, namespaced)])

    for ref, kind, shipped in (
        ({"name": "plain"}, "ClusterTrainingRuntime", False),
        ({"name": "torch-distributed"}, "ClusterTrainingRuntime", True),
        ({"name": "torch-distributed", "kind": "TrainingRuntime"}, "TrainingRuntime", False),
    ):
        job = train_job(**ref)
        runtime = anyio.run(workspace.of, job)
        assert (runtime.kind, runtime.metadata.name) == (kind, ref["name"])
        assert workspace.builds_on_shipped(job) == shipped
    with pytest.raises(RuntimeNotFoundError):
        anyio.run(workspace.of, train_job(name="of-the-cluster", kind="TrainingRuntime"))
    with pytest.raises(BuildError, match="kind to ClusterTrainingRuntime"):
        anyio.run(workspace.of, train_job(name="plain", kind="TrainingRuntime"))


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
        pytest.param(TRAIN_JOBS, train_job_object(runtimeRef={"name": "plain"}), [], id="TrainJob"),
        pytest.param(
            TRAIN_JOBS,
            train_job_object(runtimeRef={"name": "plain"}, trainer={"numProcPerNode": 2}),
            ["spec.trainer.numProcPerNode"],
            id="TrainJob that does not fit",
        ),
        pytest.param(CLUSTER_TRAINING_RUNTIMES, runtime_object(), [], id="runtime"),
        pytest.param(
            CLUSTER_TRAINING_RUNTIMES,
            runtime_object(policy={"numNodes": 0}),
            ["spec.mlPolicy.numNodes"],
            id="runtime that nobody can use",
        ),
        pytest.param(CONFIG_MAPS, config_map("a"), [], id="anything else"),
    ],
)
def test_review(resource: Any, obj: Object, errors: list[str]) -> None:
    """The checks are those of admission."""
    workspace = Workspace([Document(resource, obj)])

    review = anyio.run(workspace.review, workspace.documents[0])

    assert [error.field for error in review.errors] == errors


def test_plugins_are_those_of_the_configuration(tmp_path: Path) -> None:
    """The manager's configuration file says which plugins take part."""
    write(tmp_path / "manager.yaml", "plugins: {disabled: [jax]}")
    assert [plugin.name for plugin in Workspace([], tmp_path / "manager.yaml").pipeline.plugins] == sorted(
        BUILT_IN.keys() - {"jax"}
    )
    write(tmp_path / "manager.yaml", "plugins: {disabled: [jaxx]}")
    with pytest.raises(ConfigurationError, match=r"plugins.disabled\[0\]: Unsupported value"):
        Workspace([], tmp_path / "manager.yaml")
