"""Checks of the final pods, in which runtime, overrides and settings of the TrainJob are merged.

JobSet does not look into pod templates, and the Job controller would be refused the pods where no user looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.container import HUGE_PAGES, check_request
from trainer.framework import ANCESTOR_LABEL, is_exclusive, pod_spec_of
from trainer.kube.field_errors import FieldError, forbidden, invalid, listed, required
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.api.trainjob import TrainJob
    from trainer.framework import Container, PodSet, RuntimeInfo


_OTHERS_LABELS = frozenset({"job-name", "controller-uid", ANCESTOR_LABEL})
_OTHERS_DOMAINS = ("batch.kubernetes.io/", "jobset.sigs.k8s.io/")
"""Labels by which Jobs and JobSets select their pods; Kubernetes refuses other values."""


def check_pods(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Errors of reserved labels, containers without an image, mounts without a volume, requests above limits."""
    for path, labels in _labels(train_job):
        for key in labels:
            if key in _OTHERS_LABELS or key.startswith(_OTHERS_DOMAINS):
                yield forbidden(f"{path}[{key}]", "is for JobSet and Kubernetes to set on Jobs and pods; remove it")
    claims, own_mounts, own_resources = _claims(info), _Mounts(train_job), _own_resources(train_job)
    for pod_set in info.pod_sets:
        volumes = {volume.get("name") for volume in pod_set.volumes} | claims
        for kind, containers in (("containers", pod_set.containers), ("initContainers", pod_set.init_containers)):
            for container in containers:
                path = _path(info, pod_set, kind, container)
                is_main = container is pod_set.main
                if not container.image:
                    field = "spec.trainer.image" if is_main else f"{path}.image"
                    yield required(field, f"container {container.name} of {info.runtime} has no image")
                for position, mount in enumerate(container.volume_mounts):
                    if mount.get("name") not in volumes:
                        own = own_mounts.field(pod_set, kind, container, mount["mountPath"])
                        detail = f"is not a volume of the pods of {pod_set.name}"
                        field = f"{own or f'{path}.volumeMounts[{position}]'}.name"
                        yield invalid(field, mount.get("name"), detail)
                yield from _requests(own_resources if is_main else frozenset(), container, f"{path}.resources")
        yield from _unknown_claims(info, pod_set)


def _labels(train_job: TrainJob) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The pod labels that a TrainJob sets, with their fields."""
    yield "spec.labels", train_job.spec.labels or {}
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        labels = override.metadata and override.metadata.labels
        yield f"spec.podSpecOverrides[{index}].metadata.labels", labels or {}


def _path(info: RuntimeInfo, pod_set: PodSet, kind: str, container: Container) -> str:
    jobs = f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"
    return f"{jobs}.template.spec.template.spec.{kind}[{container.name}]"


def _claims(info: RuntimeInfo) -> set[str]:
    """Names of the volume claims that JobSet creates, which pods can mount as volumes."""
    policies = info.template.volume_claim_policies or []
    return {(template.get("metadata") or {}).get("name") or "" for policy in policies for template in policy.templates}


class _Mounts:
    """Volume mounts in the overrides of a TrainJob."""

    def __init__(self, train_job: TrainJob) -> None:
        self._fields: dict[tuple[str, str], list[tuple[frozenset[str], dict[str, str]]]] = {}
        for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
            targets = frozenset(target.name.lower() for target in override.target_jobs)
            for kind, changes in (("containers", override.containers), ("initContainers", override.init_containers)):
                for place, change in enumerate(changes or []):
                    path = f"spec.podSpecOverrides[{index}].{kind}[{place}].volumeMounts"
                    mounts = enumerate(change.volume_mounts or [])
                    fields = {mount.mount_path: f"{path}[{position}]" for position, mount in mounts}
                    self._fields.setdefault((kind, change.name), []).append((targets, fields))

    def field(self, pod_set: PodSet, kind: str, container: Container, mount_path: str) -> str | None:
        """The last override of a mount; None for a mount of the runtime or a plugin."""
        for targets, fields in reversed(self._fields.get((kind, container.name), [])):
            if pod_set.name in targets and mount_path in fields:
                return fields[mount_path]
        return None


def _own_resources(train_job: TrainJob) -> frozenset[str]:
    """Resources that the TrainJob sets."""
    trainer = train_job.spec.trainer
    resources = trainer.resources_per_node if trainer is not None else None
    return frozenset() if resources is None else frozenset({*(resources.requests or {}), *(resources.limits or {})})


def _requests(own: frozenset[str], container: Container, path: str) -> Iterator[FieldError]:
    """Errors of requests above their limit, and of devices such as GPUs without a limit of the same amount.

    Args:
        own: resources whose amounts the TrainJob sets in this container.
        container: as it is going to be.
        path: of its resources in the runtime.
    """
    requests, limits = container.resources.get("requests") or {}, container.resources.get("limits") or {}
    named = {*requests, *limits}
    pages = sorted(name for name in named if name.startswith(HUGE_PAGES))
    if pages and not named & {"cpu", "memory"}:
        yield required(_place(own, pages[0], path), "huge pages need cpu or memory beside them")
    for name, amount in requests.items():
        field = f"{_place(own, name, path)}.requests[{name}]"
        limit = limits.get(name)
        if is_exclusive(name) and (limit is None or parse_quantity(limit) != parse_quantity(amount)):
            shown = "none" if limit is None else limit
            yield invalid(field, amount, f"must be equal to the {name} limit, which is {shown}: it cannot be shared")
        else:
            yield from check_request(name, amount, limit, field)


def _unknown_claims(info: RuntimeInfo, pod_set: PodSet) -> Iterator[FieldError]:
    """Errors of device claims that the TrainJob names and its pods lack."""
    if pod_set.main is None:
        return
    spec = pod_spec_of(info.job_of(pod_set))
    names = {str(claim.get("name")): claim for claim in spec.get("resourceClaims") or []}
    for index, claim in enumerate(pod_set.main.resources.get("claims") or []):
        if str(claim.get("name")) not in names:
            detail = (
                f"is not a resourceClaim of the pods of {pod_set.name} of {info.runtime}; they have {listed([*names])}"
            )
            yield invalid(f"spec.trainer.resourcesPerNode.claims[{index}].name", claim.get("name"), detail)


def _place(own: frozenset[str], name: str, path: str) -> str:
    """The field that sets a wrong amount: the TrainJob's if it sets that resource."""
    return "spec.trainer.resourcesPerNode" if name in own else path
