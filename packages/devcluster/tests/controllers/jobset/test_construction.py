from __future__ import annotations

from typing import Any

from packages.devcluster.tests.controllers.jobset.samples import ago, make_job, make_jobset, make_replicated_job
from trainer.kube.objects import Object
from trainer_devcluster.controllers.jobset.construction import build_job, resumed_job

PREFIX = "jobset.sigs.k8s.io"


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


def test_other_volumes_are_kept() -> None:
    """The claims come after what the template has."""
    replicated_job = make_mounting(main=("a", "tmp"))
    replicated_job["template"]["spec"]["template"]["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    jobset = make_jobset(replicated_job, volumeClaimPolicies=[make_policy("a")])
    pod_spec = build_job(jobset, replicated_job, 0)["spec"]["template"]["spec"]
    assert [volume["name"] for volume in pod_spec["volumes"]] == ["tmp", "a"]
