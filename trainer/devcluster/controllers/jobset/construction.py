"""Making the Jobs and the headless Service of a JobSet."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.devcluster.controllers.jobset.claims import claim_volumes
from trainer.devcluster.controllers.jobset.names import JOBSET_NAME, job_labels, job_name, subdomain_of
from trainer.kube.objects import controller_reference, name_of, namespace_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object

SIZE_FIELDS = ("parallelism", "completions")
"""What of a Job's specification says how many pods it has."""


def build_job(jobset: Object, replicated_job: Object, index: int) -> Object:
    """One Job of a replicated job, for the JobSet's present restart."""
    template = deepcopy(replicated_job["template"])
    labels = job_labels(jobset, replicated_job, index)
    given = template.get("metadata") or {}
    spec = template["spec"]
    pod_metadata = spec["template"].get("metadata") or {}
    spec["template"]["metadata"] = {**pod_metadata, **_labelled(pod_metadata, labels)}
    pod_spec = spec["template"]["spec"]
    if has_dns_hostnames(jobset):
        pod_spec["subdomain"] = subdomain_of(jobset)
    if volumes := claim_volumes(jobset, pod_spec):
        pod_spec["volumes"] = [*(pod_spec.get("volumes") or []), *volumes]
    spec["suspend"] = is_suspended(jobset)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(jobset, replicated_job["name"], index),
            "namespace": namespace_of(jobset),
            **_labelled(given, labels),
            "ownerReferences": [controller_reference(jobset)],
        },
        "spec": spec,
    }


def build_service(jobset: Object) -> Object:
    """The headless Service that gives the pods their names `<job>-<index>.<subdomain>`."""
    network = jobset["spec"].get("network") or {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": subdomain_of(jobset),
            "namespace": namespace_of(jobset),
            "ownerReferences": [controller_reference(jobset)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {JOBSET_NAME: name_of(jobset)},
            "publishNotReadyAddresses": network.get("publishNotReadyAddresses", True),
        },
    }


def resumed_job(job: Object, replicated_job: Object) -> Object:
    """The suspended Job as it is to go on, with the scheduling directives that the JobSet has now.

    They are merged, not replaced: what others have added to the Job (an admission queue, say) stays.
    """
    resumed = deepcopy(job)
    resumed["spec"]["suspend"] = False
    wanted, present = replicated_job["template"]["spec"]["template"], resumed["spec"]["template"]
    _merge_maps(present.setdefault("metadata", {}), wanted.get("metadata") or {}, ("labels", "annotations"))
    _merge_maps(present["spec"], wanted["spec"], ("nodeSelector",))
    for field in ("tolerations", "schedulingGates"):
        entries = [*(present["spec"].get(field) or [])]
        entries += [entry for entry in wanted["spec"].get(field) or [] if entry not in entries]
        if entries:
            present["spec"][field] = entries
    return resumed


def resized_job(job: Object, replicated_job: Object) -> Object:
    """The Job with as many pods as the JobSet says now (feature gate ElasticJobSet); the same object if it has them.

    Only Indexed Jobs have a size that the JobSet may change.
    """
    wanted = replicated_job["template"]["spec"]
    if job["spec"].get("completionMode") != "Indexed":
        return job
    size = {field: wanted[field] for field in SIZE_FIELDS if wanted.get(field) is not None}
    if size.items() <= job["spec"].items():
        return job
    return {**job, "spec": {**job["spec"], **size}}


def suspended_job(job: Object) -> Object:
    """The Job with `spec.suspend` set."""
    return {**job, "spec": {**job["spec"], "suspend": True}}


def has_dns_hostnames(jobset: Object) -> bool:
    """Whether the pods get names through a headless Service."""
    return bool((jobset["spec"].get("network") or {}).get("enableDNSHostnames", True))


def is_suspended(jobset: Object) -> bool:
    """Whether the JobSet is to run no pods."""
    return bool(jobset["spec"].get("suspend"))


def _labelled(metadata: Object, labels: dict[str, str]) -> dict[str, dict[str, str]]:
    return {field: {**(metadata.get(field) or {}), **labels} for field in ("labels", "annotations")}


def _merge_maps(present: Object, wanted: Object, fields: tuple[str, ...]) -> None:
    for field in fields:
        merged = {**(present.get(field) or {}), **(wanted.get(field) or {})}
        if merged:
            present[field] = merged
