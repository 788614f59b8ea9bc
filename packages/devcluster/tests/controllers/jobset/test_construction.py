from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.controllers.jobset.samples import ago, make_job, make_jobset, make_replicated_job
from trainer.kube.objects import Object, is_controlled_by, name_of
from trainer_devcluster.controllers.jobset.construction import build_claims, build_job, build_service, resumed_job

PREFIX = "jobset.sigs.k8s.io"


def test_job_key_is_the_sha1_of_namespace_and_name() -> None:
    """The key that a real JobSet controller wrote for this namespace and name."""
    jobset = make_jobset()
    jobset["metadata"] |= {"name": "a", "namespace": "life-success"}
    job = build_job(jobset, jobset["spec"]["replicatedJobs"][0], 0)
    assert job["metadata"]["labels"][f"{PREFIX}/job-key"] == "f5fa2ada9c0ffa231c35ecbd418424725a2407f1"


def test_template_is_not_changed() -> None:
    """The JobSet is a cached object and stays as it is."""
    jobset = make_jobset()
    build_job(jobset, jobset["spec"]["replicatedJobs"][0], 0)
    assert jobset == make_jobset()


@pytest.mark.parametrize(
    ("network", "subdomain", "publish"),
    [
        pytest.param({"enableDNSHostnames": True, "publishNotReadyAddresses": True}, "js", True, id="default"),
        pytest.param({"enableDNSHostnames": True, "subdomain": "net"}, "net", True, id="own name"),
        pytest.param({"publishNotReadyAddresses": False}, "js", False, id="ready pods only"),
    ],
)
def test_headless_service(network: dict[str, Any], subdomain: str, publish: bool) -> None:
    """The Service selects the pods of the JobSet under the subdomain."""
    jobset = make_jobset(network=network)
    service = build_service(jobset)
    assert service["metadata"]["name"] == subdomain
    assert service["spec"] == {
        "clusterIP": "None",
        "selector": {f"{PREFIX}/jobset-name": "js"},
        "publishNotReadyAddresses": publish,
    }
    assert is_controlled_by(service, jobset)
    assert (
        build_job(jobset, jobset["spec"]["replicatedJobs"][0], 0)["spec"]["template"]["spec"]["subdomain"] == subdomain
    )


def test_pods_without_dns_hostnames_have_no_subdomain() -> None:
    """`network.enableDNSHostnames: false` leaves the pods without names."""
    jobset = make_jobset(network={"enableDNSHostnames": False})
    assert "subdomain" not in build_job(jobset, jobset["spec"]["replicatedJobs"][0], 0)["spec"]["template"]["spec"]


def test_resumed_job_merges_the_scheduling_directives() -> None:
    """What an admission queue wrote to the JobSet arrives; what others wrote to the Job stays."""
    jobset = make_jobset(suspend=True)
    job = make_job(jobset, status={"startTime": ago(5)})
    job["spec"]["template"]["spec"]["nodeSelector"] = {"kept": "1"}
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["spec"] |= {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    template["metadata"] = {"annotations": {"queue": "q"}}

    resumed = resumed_job(job, jobset["spec"]["replicatedJobs"][0])

    assert resumed["spec"]["suspend"] is False
    assert resumed["spec"]["template"]["spec"]["nodeSelector"] == {"kept": "1", "pool": "gpu"}
    assert resumed["spec"]["template"]["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert resumed["spec"]["template"]["metadata"]["annotations"]["queue"] == "q"
    assert resumed["spec"]["template"]["metadata"]["annotations"][f"{PREFIX}/jobset-name"] == "js"
    assert job["spec"]["suspend"] is True


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
