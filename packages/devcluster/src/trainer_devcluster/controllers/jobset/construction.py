"""Making the Jobs, the headless Service and the volume claims of a JobSet."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from trainer.kube.objects import Object, controller_reference, labels_of, name_of, namespace_of
from trainer_devcluster.controllers.jobset.names import (
    JOBSET_NAME,
    claim_name,
    job_labels,
    job_name,
    subdomain_of,
)

SIZE_FIELDS = ("parallelism", "completions")
"""The fields of a Job's specification that set its number of pods."""


def build_job(jobset: Object, replicated_job: Object, index: int) -> Object:
    """One Job of a replicated job, for the JobSet's present restart."""
    template = deepcopy(replicated_job["template"])
    name = job_name(jobset, replicated_job["name"], index)
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
            "name": name,
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
    return {
        "labels": {**(metadata.get("labels") or {}), **labels},
        "annotations": {**(metadata.get("annotations") or {}), **labels},
    }


def _merge_maps(present: Object, wanted: Object, fields: tuple[str, ...]) -> None:
    for field in fields:
        merged = {**(present.get(field) or {}), **(wanted.get(field) or {})}
        if merged:
            present[field] = merged


def build_claims(jobset: Object) -> tuple[Object, ...]:
    """The claims, which belong to the JobSet if they are to be deleted with it."""
    return tuple(
        _build_claim(jobset, policy, template)
        for policy in jobset["spec"].get("volumeClaimPolicies") or []
        for template in policy.get("templates") or []
    )


def claim_volumes(jobset: Object, pod_spec: Object) -> list[Object]:
    """The volumes that pods need for those of the claims that a container or init container of theirs mounts."""
    mounted = set(_mounted(pod_spec))
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": claim_name(jobset, name)}}
        for policy in jobset["spec"].get("volumeClaimPolicies") or []
        for name in map(name_of, policy.get("templates") or [])
        if name in mounted
    ]


def _build_claim(jobset: Object, policy: Object, template: Object) -> Object:
    annotations = template["metadata"].get("annotations")
    is_deleted = (policy.get("retentionPolicy") or {}).get("whenDeleted") == "Delete"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(jobset, name_of(template)),
            "namespace": namespace_of(jobset),
            "labels": {**labels_of(template), JOBSET_NAME: name_of(jobset)},
            **({"annotations": annotations} if annotations else {}),
            **({"ownerReferences": [controller_reference(jobset)]} if is_deleted else {}),
        },
        "spec": template["spec"],
    }


def _mounted(pod_spec: Object) -> Iterator[str]:
    for container in (*(pod_spec.get("initContainers") or []), *(pod_spec.get("containers") or [])):
        for mount in container.get("volumeMounts") or []:
            yield mount.get("name", "")
