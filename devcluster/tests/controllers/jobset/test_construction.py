from __future__ import annotations

from typing import Any

import pytest

from devcluster.tests.controllers.jobset.samples import ago, make_job, make_jobset, make_replicated_job
from trainer.kube.objects import is_controlled_by
from trainer_devcluster.controllers.jobset.construction import build_job, build_service, resumed_job

PREFIX = "jobset.sigs.k8s.io"


def test_job_carries_its_place_in_the_jobset() -> None:
    """Labels and annotations, of the Job and of its pods alike, tell every index and count."""
    jobset = make_jobset(
        make_replicated_job("launcher", groupName="a"),
        make_replicated_job("node", replicas=3, groupName="b"),
        status={"restarts": 2},
        coordinator={"replicatedJob": "launcher", "jobIndex": 0, "podIndex": 1},
    )
    job = build_job(jobset, jobset["spec"]["replicatedJobs"][1], 1)
    expected = {
        f"{PREFIX}/jobset-name": "js",
        f"{PREFIX}/jobset-uid": "jobset-uid",
        f"{PREFIX}/replicatedjob-name": "node",
        f"{PREFIX}/replicatedjob-replicas": "3",
        f"{PREFIX}/global-replicas": "4",
        f"{PREFIX}/job-index": "1",
        f"{PREFIX}/job-global-index": "2",
        f"{PREFIX}/job-key": "e6f03d0919721927965baeebe9ce21c2245673ac",
        f"{PREFIX}/restart-attempt": "2",
        f"{PREFIX}/group-name": "b",
        f"{PREFIX}/group-replicas": "3",
        f"{PREFIX}/job-group-index": "1",
        f"{PREFIX}/coordinator": "js-launcher-0-1.js",
    }

    assert job["metadata"]["name"] == "js-node-1"
    assert job["metadata"]["labels"] == {"from": "template", **expected}
    assert job["metadata"]["annotations"] == expected
    pods = job["spec"]["template"]
    assert pods["metadata"] == {"labels": expected, "annotations": expected}
    assert pods["spec"]["subdomain"] == "js"
    assert job["spec"]["suspend"] is False
    assert is_controlled_by(job, jobset)


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


TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"


@pytest.mark.parametrize(
    ("of_the_jobset", "of_the_template", "expected"),
    [
        pytest.param({TOPOLOGY: "rack"}, {}, {TOPOLOGY: "rack"}, id="of the JobSet"),
        pytest.param({TOPOLOGY: "rack"}, {TOPOLOGY: "zone"}, {TOPOLOGY: "zone"}, id="of a replicated job"),
        pytest.param({STRATEGY: "true"}, {}, {}, id="a strategy for nothing"),
        pytest.param({TOPOLOGY: "rack", STRATEGY: "true"}, {}, {TOPOLOGY: "rack", STRATEGY: "true"}, id="strategy"),
    ],
)
def test_exclusive_placement_is_written_on_jobs_and_pods(
    of_the_jobset: dict[str, str], of_the_template: dict[str, str], expected: dict[str, str]
) -> None:
    """With the node selector strategy the pods go to nodes that are labelled with their Job."""
    jobset = make_jobset()
    jobset["metadata"]["annotations"] = of_the_jobset
    [replicated_job] = jobset["spec"]["replicatedJobs"]
    replicated_job["template"]["metadata"]["annotations"] = of_the_template
    job = build_job(jobset, replicated_job, 0)
    pod = job["spec"]["template"]
    for metadata in (job["metadata"], pod["metadata"]):
        found = {name: value for name, value in metadata["annotations"].items() if name in (TOPOLOGY, STRATEGY)}
        assert found == expected
        assert not {TOPOLOGY, STRATEGY} & metadata["labels"].keys()
    if STRATEGY in expected:
        assert pod["spec"]["nodeSelector"] == {"alpha.jobset.sigs.k8s.io/namespaced-job": "n_js-node-0"}
        taint = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists", "effect": "NoSchedule"}
        assert pod["spec"]["tolerations"] == [taint]
    else:
        assert "nodeSelector" not in pod["spec"]
