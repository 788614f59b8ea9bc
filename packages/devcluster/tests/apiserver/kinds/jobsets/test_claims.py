from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.jobsets.builders import complaints
from trainer.kube.objects import Object

CLAIM_SPEC: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NAME = "spec.volumeClaimPolicies[0].template[0].name"
RETAIN = {"whenDeleted": "Retain"}
DELETE = {"whenDeleted": "Delete"}


def make_jobset(
    *names: str, mounts: tuple[str, ...] | None = None, volume: str = "other", name: str = "js", **policy: Any
) -> Object:
    """A JobSet with one policy for claims of these names, which its init container mounts unless said otherwise."""
    mounted = [{"name": each, "mountPath": f"/{each}"} for each in (names if mounts is None else mounts)]
    pod_spec = {
        "initContainers": [{"name": "i", "volumeMounts": mounted}],
        "containers": [{"name": "c"}],
        "volumes": [{"name": volume, "emptyDir": {}}],
    }
    templates = [{"metadata": {"name": each}, "spec": dict(CLAIM_SPEC)} for each in names]
    job = {
        "name": "node",
        "groupName": "default",
        "replicas": 1,
        "template": {"spec": {"template": {"spec": pod_spec}}},
    }
    return {
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"replicatedJobs": [job], "volumeClaimPolicies": [{"templates": templates, **policy}]},
    }


def make_claim(**spec: Any) -> Object:
    metadata = {"name": "data-js", "namespace": "n"}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**CLAIM_SPEC, **spec}}


@pytest.mark.parametrize(
    ("jobset", "field", "message"),
    [
        pytest.param(make_jobset("d" * 61), NAME, "VolumeClaimPolicies template name is too long", id="64 characters"),
        pytest.param(
            make_jobset("data", mounts=("other",)),
            "spec.replicatedJobs",
            "Invalid value: replicatedJob containers don't have a matching volumeMount: data from VolumeClaimPolicies",
            id="not mounted",
        ),
        pytest.param(
            make_jobset("data", volume="data"),
            "spec.replicatedJobs[0].template.spec.template.spec.volumes[0].name",
            'Invalid value: "data": volume name conflicts with VolumeClaimPolicy template name: data',
            id="name of a volume",
        ),
    ],
)
def test_claims_that_no_pod_could_use_are_refused(jobset: Object, field: str, message: str) -> None:
    """The cause names the field, in the words of JobSet."""
    [complaint] = complaints(jobset)
    assert complaint.startswith(f"{field}: ")
    assert message in complaint


@pytest.mark.parametrize(
    ("policy", "claim", "messages"),
    [
        pytest.param(
            {"retentionPolicy": RETAIN},
            make_claim(volumeMode="Filesystem"),
            ["spec does not match existing PVC data-js in namespace n"],
            id="another specification",
        ),
        pytest.param({}, make_claim(), ["retentionPolicy must be retain when PVC exists"], id="would be deleted"),
    ],
)
def test_claim_that_exists_is_used_only_if_it_is_as_wanted_and_stays(
    policy: Object, claim: Object, messages: list[str]
) -> None:
    """A JobSet takes over what somebody else has made only to the letter, and never deletes it."""
    found = complaints(make_jobset("data", **policy), claim)
    assert [complaint.split(": ")[-1] for complaint in found] == messages
    assert complaints(make_jobset("data", name="other", **policy), claim) == []
