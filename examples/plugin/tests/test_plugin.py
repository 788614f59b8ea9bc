"""What the plugin does to TrainJobs, shown on what is built of them."""

from __future__ import annotations

from typing import Any

import pytest
from shared_memory_plugin.plugin import ANNOTATION, PATH, SharedMemory

from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework import Pipeline, PluginContext, Registry, StaticReader
from trainer.plugins.jobset import JobSetPlugin


def pipeline(**configuration: Any) -> Pipeline:
    """The plugin, and the one that builds JobSets."""
    reader = StaticReader()
    return Pipeline(Registry([JobSetPlugin(reader), SharedMemory(PluginContext(reader, configuration))]))


def runtime(*volumes: Any, **container: Any) -> ClusterTrainingRuntime:
    """A runtime with one kind of node."""
    pod = {"volumes": list(volumes), "containers": [{"name": "trainer", "image": "train:1"} | container]}
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return ClusterTrainingRuntime.from_object(
        {"metadata": {"name": "plain"}, "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    )


def train_job(**annotations: str) -> TrainJob:
    """A TrainJob that builds on it."""
    metadata = {"name": "demo", "namespace": "team", "uid": "1", "annotations": annotations}
    return TrainJob.from_object({"metadata": metadata, "spec": {"runtimeRef": {"name": "plain"}}})


def pod_spec(configured: Pipeline, job: TrainJob, blueprint: ClusterTrainingRuntime) -> Any:
    """The pods that a TrainJob would have."""
    [component] = configured.build(job, blueprint)
    return component.object["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("configuration", "annotations", "size"),
    [
        pytest.param({}, {}, "2Gi", id="default"),
        pytest.param({"size": "8Gi"}, {}, "8Gi", id="of-the-platform"),
        pytest.param({"size": "8Gi"}, {ANNOTATION: "512Mi"}, "512Mi", id="of-the-train-job"),
    ],
)
def test_shared_memory(configuration: dict[str, Any], annotations: dict[str, str], size: str) -> None:
    """Every node gets a volume in memory, as large as the TrainJob or else the platform says."""
    spec = pod_spec(pipeline(**configuration), train_job(**annotations), runtime())
    assert spec["volumes"] == [{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": size}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]


def test_a_mount_of_the_runtime_stays() -> None:
    """Who has thought of shared memory already is left alone."""
    volume, mount = {"name": "own", "emptyDir": {}}, {"name": "own", "mountPath": "/dev/shm"}
    spec = pod_spec(pipeline(), train_job(), runtime(volume, volumeMounts=[mount]))
    assert (spec["volumes"], spec["containers"][0]["volumeMounts"]) == ([volume], [mount])


def test_what_is_no_amount_is_refused() -> None:
    """The author of the TrainJob learns at once which annotation is wrong, and why."""
    review = pipeline().review(train_job(**{ANNOTATION: "lots"}), runtime())
    assert [str(error) for error in review.errors] == [
        f"{PATH}: Invalid value: \"lots\": must be a quantity such as 2, 500m or 4Gi, got 'lots'"
    ]


def test_more_than_the_container_may_use() -> None:
    """Shared memory counts against the limit of the container, which is worth a warning."""
    limited = runtime(resources={"limits": {"memory": "1Gi"}})
    [warning] = pipeline().review(train_job(), limited).warnings
    assert "limited to 1Gi" in str(warning)
