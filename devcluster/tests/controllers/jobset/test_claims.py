from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.controllers.jobset.samples import make_jobset, make_replicated_job
from trainer.kube.objects import is_controlled_by, name_of
from trainer_devcluster.controllers.jobset.claims import build_claims
from trainer_devcluster.controllers.jobset.construction import build_job

if TYPE_CHECKING:
    from trainer.kube.objects import Object

SPEC: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def make_policy(*names: str, when_deleted: str = "Delete", **metadata: Any) -> Object:
    templates = [{"metadata": {"name": name, **metadata}, "spec": SPEC, "status": {}} for name in names]
    return {"templates": templates, "retentionPolicy": {"whenDeleted": when_deleted}}


def make_mounting(*, init: tuple[str, ...] = (), main: tuple[str, ...] = ()) -> Object:
    """A replicated job whose containers mount volumes of these names."""
    replicated_job = make_replicated_job()
    pod_spec = replicated_job["template"]["spec"]["template"]["spec"]
    pod_spec["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": "/m"} for name in main]
    pod_spec["initContainers"] = [{"name": "i", "volumeMounts": [{"name": name, "mountPath": "/i"} for name in init]}]
    return replicated_job


@pytest.mark.parametrize(
    ("when_deleted", "is_owned"),
    [
        pytest.param("Delete", True, id="goes with the JobSet"),
        pytest.param("Retain", False, id="stays"),
    ],
)
def test_claim_belongs_to_the_jobset_if_it_goes_with_it(when_deleted: str, is_owned: bool) -> None:
    """The garbage collector deletes what has an owner."""
    jobset = make_jobset(volumeClaimPolicies=[make_policy("data", when_deleted=when_deleted)])
    [claim] = build_claims(jobset)
    assert is_controlled_by(claim, jobset) is is_owned


def test_claim_is_made_from_its_template() -> None:
    """Name and label say whose it is; labels and annotations of the template are kept."""
    metadata = {"labels": {"a": "b", "jobset.sigs.k8s.io/jobset-name": "x"}, "annotations": {"c": "d"}}
    [claim] = build_claims(make_jobset(volumeClaimPolicies=[make_policy("data", when_deleted="Retain", **metadata)]))
    assert claim == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-js",
            "namespace": "n",
            "labels": {"a": "b", "jobset.sigs.k8s.io/jobset-name": "js"},
            "annotations": {"c": "d"},
        },
        "spec": SPEC,
    }


def test_claims_of_all_policies_are_made() -> None:
    """In the order in which they are written, mounted by this Job or by another."""
    jobset = make_jobset(volumeClaimPolicies=[make_policy("b", "a"), make_policy("c")])
    assert [name_of(claim) for claim in build_claims(jobset)] == ["b-js", "a-js", "c-js"]


@pytest.mark.parametrize(
    ("replicated_job", "volumes"),
    [
        pytest.param(make_mounting(main=("c", "a")), {"a": "a-js", "c": "c-js"}, id="mounted by a container"),
        pytest.param(make_mounting(init=("b",), main=("a",)), {"a": "a-js", "b": "b-js"}, id="by an init container"),
        pytest.param(make_mounting(main=("other",)), {}, id="not mounted"),
    ],
)
def test_pods_get_the_volumes_that_they_mount(replicated_job: Object, volumes: dict[str, str]) -> None:
    """A mount of the claim's name is all that a pod needs to say."""
    jobset = make_jobset(replicated_job, volumeClaimPolicies=[make_policy("a", "b"), make_policy("c")])
    pod_spec = build_job(jobset, replicated_job, 0)["spec"]["template"]["spec"]
    claims = {volume["name"]: volume["persistentVolumeClaim"] for volume in pod_spec.get("volumes", [])}
    assert claims == {name: {"claimName": claim} for name, claim in volumes.items()}


def test_other_volumes_are_kept() -> None:
    """The claims come after what the template has."""
    replicated_job = make_mounting(main=("a", "tmp"))
    replicated_job["template"]["spec"]["template"]["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    jobset = make_jobset(replicated_job, volumeClaimPolicies=[make_policy("a")])
    pod_spec = build_job(jobset, replicated_job, 0)["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod_spec["volumes"]] == ["tmp", "a"]
