"""Jobs and pods that cannot be created because of a quota, a policy, a webhook or a missing object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.objects import key_of, labels_of, metadata_of, uid_of
from trainer.kube.resource import JOBS, PODS
from trainer.plugins.jobset.complaints import complained_of, has_complaints, latest_complaint
from trainer.plugins.jobset.wait import Waiting, about
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trainer.kube.objects import Object, ObjectKey
    from trainer.plugins.jobset.complaints import Complaint
    from trainer.plugins.jobset.pod_troubles import Troubles


def refusals(troubles: Troubles) -> Iterator[Waiting]:
    """The Jobs that JobSet cannot create, and the pods that Jobs cannot create."""
    yield from _refused_jobs(troubles)
    yield from _refused_pods(troubles)


def _refused_jobs(troubles: Troubles) -> Iterator[Waiting]:
    reader, jobset = troubles.reader, troubles.jobset
    if not has_complaints(reader, JOBSETS, key_of(jobset)):
        return
    jobs = reader.keys(JOBS, CONTROLLER_UID, uid_of(jobset))
    wanted = sum(job.get("replicas", 1) for job in (jobset.get("spec") or {}).get("replicatedJobs") or [])
    complaint = latest_complaint(reader, JOBSETS, key_of(jobset), uid=uid_of(jobset))
    if complaint is None or len(jobs) >= wanted or _is_outdated(complaint, map(troubles.job, jobs)):
        return
    yield Waiting(complaint.reason, "Jobs cannot be created", f"JobSet {key_of(jobset).name}", complaint.message)


def _refused_pods(troubles: Troubles) -> Iterator[Waiting]:
    """One problem for each reason, since the Jobs of a JobSet usually share theirs."""
    missing: dict[str, int] = {}
    examples: dict[str, tuple[Object, Complaint]] = {}
    sizes = _unsettled(troubles.jobset)
    jobs = troubles.reader.keys(JOBS, CONTROLLER_UID, uid_of(troubles.jobset)) if sizes else ()
    for key in sorted(complained_of(troubles.reader, JOBS, jobs)):
        found = _refused_by(troubles, key, sizes)
        if found is not None:
            job, complaint, count = found
            missing[complaint.reason] = missing.get(complaint.reason, 0) + count
            examples.setdefault(complaint.reason, (job, complaint))
    for reason, (job, complaint) in examples.items():
        replicated_job = labels_of(job).get(REPLICATED_JOB, "")
        headline = f"{about(missing[reason])} cannot be created"
        yield Waiting(reason, headline, f"Job {key_of(job).name}", complaint.message, replicated_job)


def _refused_by(troubles: Troubles, key: ObjectKey, sizes: Mapping[str, int]) -> tuple[Object, Complaint, int] | None:
    """A Job that lacks pods, the event with the reason, and the number of missing pods; None without an event."""
    reader = troubles.reader
    job = troubles.job(key)
    if job is None:
        return None
    name = labels_of(job).get(REPLICATED_JOB, "")
    made = reader.keys(PODS, CONTROLLER_UID, uid_of(job))
    failed = made & troubles.failed_in(name)
    lacking = sizes.get(name, 0) - len(made - failed)
    complaint = latest_complaint(reader, JOBS, key, uid=uid_of(job)) if lacking > 0 else None
    if complaint is None or _is_outdated(complaint, (reader.get(PODS, pod) for pod in failed)):
        return None
    return job, complaint, lacking


def _unsettled(jobset: Object) -> dict[str, int]:
    """Pods of each Job in the replicated Jobs with a Job that is neither ready nor ended."""
    counts = {count["name"]: count for count in (jobset.get("status") or {}).get("replicatedJobsStatus") or []}
    sizes = {}
    for job in (jobset.get("spec") or {}).get("replicatedJobs") or []:
        count = counts.get(job["name"]) or {}
        if sum(count.get(name) or 0 for name in ("ready", "succeeded", "failed")) < job.get("replicas", 1):
            spec = (job.get("template") or {}).get("spec") or {}
            parallelism = spec.get("parallelism", 1)
            sizes[job["name"]] = min(parallelism, spec.get("completions", parallelism))
    return sizes


def _is_outdated(complaint: Complaint, made: Iterable[Object | None]) -> bool:
    """Whether an object was created after the last event that it could not be.

    Both times are whole seconds. Within the same one the complaint loses: who still fails complains again soon, and one
    that is out of date would stay for the life of the event.
    """
    times = [str(metadata_of(obj).get("creationTimestamp") or "").rstrip("Z") for obj in made if obj is not None]
    return bool(times) and max(times) >= complaint.seen
