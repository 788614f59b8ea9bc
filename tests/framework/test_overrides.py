"""Pod spec overrides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.errors import BuildError
from trainer.framework.overrides import apply_overrides
from trainer.framework.template import normalised, pod_spec_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def overridden(blueprint_job: Object, *overrides: Object) -> Object:
    """The pod spec of the runtime's only replicated Job after the overrides."""
    template = normalised(runtime(blueprint_job).spec.template.spec, "runtime")
    apply_overrides(template, train_job(podSpecOverrides=list(overrides)).spec.pod_spec_overrides or [], "runtime")
    return pod_spec_of((template.replicated_jobs or [])[0])


def override(**fields: object) -> Object:
    """An override of the replicated Job Node."""
    return {"targetJobs": [{"name": "Node"}]} | fields


def test_everything_that_can_be_overridden() -> None:
    """Lists merge by their key, maps by key, other values are replaced."""
    job = replicated_job(
        "Node",
        {
            "name": "trainer",
            "command": ["old"],
            "env": [{"name": "A", "value": "old"}, {"name": "B", "value": "old"}],
            "envFrom": [{"configMapRef": {"name": "c"}}],
            "volumeMounts": [{"name": "old", "mountPath": "/workspace"}],
        },
        pod={
            "initContainers": [{"name": "init"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "nodeSelector": {"disk": "ssd", "zone": "a"},
            "tolerations": [{"key": "gpu"}],
        },
    )
    change = override(
        containers=[
            {
                "name": "trainer",
                "command": ["python train.py"],
                "args": ["--new"],
                "env": [{"name": "B", "value": "new"}],
                "envFrom": [{"secretRef": {"name": "s"}}],
                "volumeMounts": [{"name": "new", "mountPath": "/workspace"}, {"name": "new", "mountPath": "/data"}],
            }
        ],
        initContainers=[{"name": "init", "args": ["x"]}],
        volumes=[{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}],
        serviceAccountName="sa",
        nodeSelector={"zone": "b"},
        tolerations=[{"key": "gpu"}, {"key": "spot"}],
    )

    assert overridden(job, change) == {
        "containers": [
            {
                "name": "trainer",
                "command": ["python", "train.py"],
                "args": ["--new"],
                "env": [{"name": "A", "value": "old"}, {"name": "B", "value": "new"}],
                "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
                "volumeMounts": [{"name": "new", "mountPath": "/workspace"}, {"name": "new", "mountPath": "/data"}],
            }
        ],
        "initContainers": [{"name": "init", "args": ["x"]}],
        "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}],
        "serviceAccountName": "sa",
        "nodeSelector": {"disk": "ssd", "zone": "b"},
        "tolerations": [{"key": "gpu"}, {"key": "spot"}],
    }


def test_later_overrides_win() -> None:
    """Overrides are applied in order."""
    spec = overridden(replicated_job(), override(serviceAccountName="first"), override(serviceAccountName="second"))
    assert spec["serviceAccountName"] == "second"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"targetJobs": [{"name": "worker"}]},
            "spec.podSpecOverrides[0].targetJobs[0].name: runtime has no replicated Job worker; it has node",
            id="job",
        ),
        pytest.param(
            override(containers=[{"name": "sidecar"}]),
            "spec.podSpecOverrides[0].containers[sidecar]: replicated Job node of runtime has no such container; "
            "it has trainer",
            id="container",
        ),
        pytest.param(
            override(initContainers=[{"name": "init"}]),
            "spec.podSpecOverrides[0].initContainers[init]: replicated Job node of runtime has no such container; "
            "it has none",
            id="init-container",
        ),
        pytest.param(
            {"targetJobs": []},
            "spec.podSpecOverrides[0].targetJobs: must name at least one replicated Job of the runtime",
            id="no-target",
        ),
    ],
)
def test_refused(change: Object, message: str) -> None:
    """An override of something that the runtime does not have would have no effect, so it is refused."""
    with pytest.raises(BuildError) as caught:
        overridden(replicated_job(), change)
    assert str(caught.value) == message
