"""The volume claims that the pods of a JobSet use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.objects import name_of
from trainer.plugins.jobset.wait import pod_specs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.objects import Object

CLAIMS = "jobset-claims"
"""Name of the index of JobSets by the claims that their pods share, each as `<namespace>/<name>`."""

_SIGNS = (b"persistentVolumeClaim", b"volumeClaimPolicies")


def claims_of_jobset(jobset: CachedObject) -> tuple[str, ...]:
    """Index function of `CLAIMS`."""
    if not any(sign in jobset.raw for sign in _SIGNS):
        return ()
    return tuple(sorted({f"{jobset.key.namespace}/{name}" for name in shared_claims(jobset)}))


def shared_claims(jobset: Mapping[str, Any]) -> Iterator[str]:
    """Names of the claims that the pods mount, and of those that JobSet makes for them."""
    spec = jobset.get("spec") or {}
    for policy in spec.get("volumeClaimPolicies") or []:
        for template in policy.get("templates") or []:
            yield f"{(template.get('metadata') or {}).get('name')}-{name_of(jobset)}"
    for volume in _volumes(jobset):
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim:
            yield claim


def ephemeral_volumes(jobset: Mapping[str, Any]) -> Iterator[str]:
    """Names of the volumes for which each pod gets a claim of its own, `<pod>-<volume>`."""
    return (volume["name"] for volume in _volumes(jobset) if volume.get("ephemeral"))


def _volumes(jobset: Mapping[str, Any]) -> Iterator[Object]:
    return (volume for _, pods in pod_specs(jobset) for volume in pods.get("volumes") or [])
