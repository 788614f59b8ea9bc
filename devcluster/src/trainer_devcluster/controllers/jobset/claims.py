"""The PersistentVolumeClaims of a JobSet, and the volumes by which its pods use them (KEP-572 of JobSet)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.objects import controller_reference, labels_of, name_of, namespace_of
from trainer_devcluster.controllers.jobset.names import JOBSET_NAME, claim_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object


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
