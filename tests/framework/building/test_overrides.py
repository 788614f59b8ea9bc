"""Pod spec overrides."""

from __future__ import annotations

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.objects import Object
from trainer.plugins.jobset.builder import build_jobset

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
RULE: Object = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}


def overridden(blueprint_job: Object, *overrides: Object) -> Object:
    """The pod spec of the runtime's only replicated Job after the overrides."""
    job = train_job(podSpecOverrides=list(overrides))
    jobset = build_jobset(extract(job, runtime(blueprint_job)), job)
    spec: Object = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


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
            "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
            "volumeMounts": [{"name": "old", "mountPath": "/workspace"}],
            "securityContext": {"privileged": False, "capabilities": {"add": ["A"], "drop": ["ALL"]}},
        },
        pod={
            "initContainers": [{"name": "init"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "nodeSelector": {"disk": "ssd", "zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "gpu", "effect": "NoExecute"}],
            "schedulingGates": [{"name": "a"}, {"name": "b"}],
            "imagePullSecrets": [{"name": "old"}],
            "securityContext": {"runAsUser": 1, "supplementalGroups": [1], "seLinuxOptions": {"level": "s0"}},
            "affinity": {"podAffinity": {PREFERRED: [RULE]}, "nodeAffinity": {PREFERRED: []}},
            "terminationGracePeriodSeconds": 30,
        },
    )
    change = override(
        containers=[
            {
                "name": "trainer",
                "command": ["python train.py"],
                "args": ["--new"],
                "env": [{"name": "B", "value": "new"}],
                "envFrom": [
                    {"secretRef": {"name": "s", "optional": True}},
                    {"prefix": "P_", "secretRef": {"name": "s"}},
                ],
                "volumeMounts": [{"name": "new", "mountPath": "/workspace"}, {"name": "new", "mountPath": "/data"}],
                "securityContext": {"capabilities": {"add": ["B"]}, "runAsUser": 0},
            }
        ],
        initContainers=[{"name": "init", "args": ["x"], "securityContext": {"runAsNonRoot": True}}],
        imagePullSecrets=[{"name": "new"}, {"name": "old"}],
        securityContext={"supplementalGroups": [2], "seLinuxOptions": {"role": "r"}, "fsGroup": 7},
        affinity={"podAffinity": {PREFERRED: []}, "podAntiAffinity": {PREFERRED: [RULE]}},
        terminationGracePeriodSeconds=0,
        volumes=[{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}],
        serviceAccountName="sa",
        nodeSelector={"zone": "b"},
        tolerations=[{"key": "gpu", "value": "a100"}, {"key": "spot"}],
        schedulingGates=[{"name": "a"}, {"name": "c"}],
    )

    assert overridden(job, change) == {
        "containers": [
            {
                "name": "trainer",
                "command": ["python", "train.py"],
                "args": ["--new"],
                "env": [{"name": "A", "value": "old"}, {"name": "B", "value": "new"}],
                "envFrom": [
                    {"configMapRef": {"name": "c"}},
                    {"secretRef": {"name": "s", "optional": True}},
                    {"prefix": "P_", "secretRef": {"name": "s"}},
                ],
                "volumeMounts": [{"name": "new", "mountPath": "/workspace"}, {"name": "new", "mountPath": "/data"}],
                "securityContext": {
                    "privileged": False,
                    "capabilities": {"add": ["B"], "drop": ["ALL"]},
                    "runAsUser": 0,
                },
            }
        ],
        "initContainers": [{"name": "init", "args": ["x"], "securityContext": {"runAsNonRoot": True}}],
        "imagePullSecrets": [{"name": "old"}, {"name": "new"}],
        "securityContext": {
            "runAsUser": 1,
            "supplementalGroups": [2],
            "seLinuxOptions": {"level": "s0", "role": "r"},
            "fsGroup": 7,
        },
        "affinity": {
            "podAffinity": {PREFERRED: []},
            "nodeAffinity": {PREFERRED: []},
            "podAntiAffinity": {PREFERRED: [RULE]},
        },
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}],
        "serviceAccountName": "sa",
        "nodeSelector": {"disk": "ssd", "zone": "b"},
        "tolerations": [{"key": "gpu", "value": "a100"}, {"key": "gpu", "effect": "NoExecute"}, {"key": "spot"}],
        "schedulingGates": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    }


def test_metadata_of_pods() -> None:
    """Labels and annotations of an override are those of the pods alone, and merge by key."""
    job = replicated_job()
    job["template"]["spec"]["template"]["metadata"] = {"labels": {"a": "old", "b": "old"}}
    change = override(metadata={"labels": {"a": "new"}, "annotations": {"c": "new"}})

    info = extract(train_job(podSpecOverrides=[change]), runtime(job))

    template = info.job_of(info.trainer).template
    assert template.spec.template["metadata"] == {"labels": {"a": "new", "b": "old"}, "annotations": {"c": "new"}}
    assert template.metadata is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"targetJobs": []},
            "spec.podSpecOverrides[0].targetJobs: Required value: name at least one replicated Job of the runtime",
            id="no-target",
        ),
    ],
)
def test_refused(change: Object, message: str) -> None:
    """An override of something that the runtime does not have would have no effect, so it is refused."""
    with pytest.raises(BuildError) as caught:
        overridden(replicated_job(), change)
    assert str(caught.value) == message
