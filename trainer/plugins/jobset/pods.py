"""What Kubernetes refuses in the pods of a Job once runtime, overrides and settings of the TrainJob are one.

JobSet does not look into pod templates, and the Job controller would be refused the pods where no user looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.container import HUGE_PAGES, check_request
from trainer.framework.overrides import container_overrides
from trainer.framework.resources import is_exclusive
from trainer.framework.runtime_info import ANCESTOR_LABEL
from trainer.framework.template import pod_spec_of
from trainer.kube.field_errors import FieldError, forbidden, invalid, required
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.api.trainjob import TrainJob
    from trainer.framework.runtime_info import Container, PodSet, RuntimeInfo
    from trainer.kube.objects import Object


_OTHERS_LABELS = frozenset({"job-name", "controller-uid", ANCESTOR_LABEL})
_OTHERS_DOMAINS = ("batch.kubernetes.io/", "jobset.sigs.k8s.io/")
"""Labels by which Jobs and JobSets find what is theirs: a Job whose pods have others is refused."""


def check_pods(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Labels of others, containers without an image, mounts without a volume, requests above limits."""
    for path, labels in _labels(train_job):
        for key in labels:
            if key in _OTHERS_LABELS or key.startswith(_OTHERS_DOMAINS):
                yield forbidden(f"{path}[{key}]", "is for JobSet and Kubernetes to set on Jobs and pods; remove it")
    for pod_set in info.pod_sets:
        volumes = {volume.get("name") for volume in pod_set.volumes} | _claims(info)
        for kind, containers in (("containers", pod_set.containers), ("initContainers", pod_set.init_containers)):
            for container in containers:
                path = _path(info, pod_set, kind, container)
                is_main = container is pod_set.main
                if not container.image:
                    field = "spec.trainer.image" if is_main else f"{path}.image"
                    yield required(field, f"container {container.name} of {info.runtime} has no image")
                mounts = _mounts(train_job, pod_set, kind, container)
                for position, mount in enumerate(container.volume_mounts):
                    if mount.get("name") not in volumes:
                        field = mounts.get(mount["mountPath"], f"{path}.volumeMounts[{position}]")
                        detail = f"is no volume of the pods of {pod_set.name}"
                        yield invalid(f"{field}.name", mount.get("name"), detail)
                yield from _requests(train_job if is_main else None, container, f"{path}.resources")
        yield from _unknown_claims(info, pod_set)


def _labels(train_job: TrainJob) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What a TrainJob wants its pods to be labelled with, and where it says so."""
    yield "spec.labels", train_job.spec.labels or {}
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        labels = override.metadata and override.metadata.labels
        yield f"spec.podSpecOverrides[{index}].metadata.labels", labels or {}


def _path(info: RuntimeInfo, pod_set: PodSet, kind: str, container: Container) -> str:
    jobs = f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"
    return f"{jobs}.template.spec.template.spec.{kind}[{container.name}]"


def _claims(info: RuntimeInfo) -> set[str]:
    """Names of the volume claims that JobSet makes, which can be mounted as volumes."""
    policies = info.template.volume_claim_policies or []
    return {(template.get("metadata") or {}).get("name") or "" for policy in policies for template in policy.templates}


def _mounts(train_job: TrainJob, pod_set: PodSet, kind: str, container: Container) -> dict[str, str]:
    """Where the overrides of the TrainJob mount volumes in a container, by path in the container."""
    return {
        mount.mount_path: f"{path}.volumeMounts[{position}]"
        for path, change in container_overrides(train_job, pod_set, container, kind)
        for position, mount in enumerate(change.volume_mounts or [])
    }


def _requests(train_job: TrainJob | None, container: Container, path: str) -> Iterator[FieldError]:
    """Requests are no more than limits, and what cannot be shared, such as GPUs, has a limit of the same amount.

    Args:
        train_job: its settings are those of the container; None for other containers.
        container: as it is going to be.
        path: of its resources in the runtime.
    """
    requests, limits = container.resources.get("requests") or {}, container.resources.get("limits") or {}
    named = {*requests, *limits}
    pages = sorted(name for name in named if name.startswith(HUGE_PAGES))
    if pages and not named & {"cpu", "memory"}:
        yield required(_place(train_job, pages[0], path), "huge pages need cpu or memory beside them")
    for name, amount in requests.items():
        field = f"{_place(train_job, name, path)}.requests[{name}]"
        limit = limits.get(name)
        if is_exclusive(name) and (limit is None or parse_quantity(limit) != parse_quantity(amount)):
            shown = "none" if limit is None else limit
            yield invalid(field, amount, f"must be equal to the {name} limit, which is {shown}: it cannot be shared")
        else:
            yield from check_request(name, amount, limit, field)


def _unknown_claims(info: RuntimeInfo, pod_set: PodSet) -> Iterator[FieldError]:
    """Devices that the TrainJob wants for the trainer, and its pods do not claim."""
    if pod_set.main is None:
        return
    spec = next(pod_spec_of(job) for job in info.template.replicated_jobs or [] if job.name == pod_set.name)
    names = [claim.get("name") for claim in spec.get("resourceClaims") or []]
    for index, claim in enumerate(pod_set.main.resources.get("claims") or []):
        if claim.get("name") not in names:
            known = ", ".join(map(str, names)) or "none"
            detail = f"is no resource claim of the pods of {pod_set.name} of {info.runtime}; they have {known}"
            yield invalid(f"spec.trainer.resourcesPerNode.claims[{index}].name", claim.get("name"), detail)


def _place(train_job: TrainJob | None, name: str, path: str) -> str:
    """Where the amount of a resource is set that does not fit: by the TrainJob if it says anything about it."""
    trainer = train_job.spec.trainer if train_job is not None else None
    own: Object = trainer.resources_per_node.to_object() if trainer and trainer.resources_per_node else {}
    is_own = any(name in (own.get(kind) or {}) for kind in ("requests", "limits"))
    return "spec.trainer.resourcesPerNode" if is_own else path
