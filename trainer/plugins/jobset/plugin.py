"""The plugin: the resources that it watches, the JobSet that it builds, and the TrainJob status from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Literal

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import jobset_keys
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionType, JobStatus
from trainer.framework import (
    Ancestor,
    BuildError,
    Component,
    Finding,
    Outcome,
    PodProblem,
    PodSet,
    Reader,
    Revision,
    RuntimeInfo,
    StatusReport,
    Watch,
    nodes_field,
)
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.handlers import owner_key
from trainer.kube.controller.predicates import any_of, on
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import (
    Object,
    ObjectKey,
    controller_of,
    find_condition,
    is_condition_true,
    key_of,
    mapping_at,
    name_of,
    namespace_of,
)
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.plugins.jobset.builder import build_jobset
from trainer.plugins.jobset.checks import check_jobs, check_pods, check_references, warn_of_queue
from trainer.plugins.jobset.deleted_pods import DeletedPods
from trainer.plugins.jobset.events import CLAIMS, claims_of_jobset, event_watches
from trainer.plugins.jobset.lost_nodes import lost_nodes
from trainer.plugins.jobset.pod_index import (
    ACTIVE,
    POD_PROBLEMS,
    PodIndex,
    WaitingJobSets,
    active_jobsets,
    problems_of,
)
from trainer.plugins.jobset.pod_problems import restart_counts, restarts, suspended_by_others, waits
from trainer.plugins.jobset.replacement import check_replacement, fixed_of
from trainer.plugins.jobset.revision import node_scale, resuspend_jobset, revise_jobset
from trainer.plugins.jobset.stopping import stopping_pods, suspended_pods
from trainer.workloads import JOBSETS
from trainer.workloads.restarts import Restarts, restart_attempt

_OUTCOMES: dict[str, Literal[ConditionType.COMPLETE, ConditionType.FAILED]] = {
    "Completed": ConditionType.COMPLETE,
    "Failed": ConditionType.FAILED,
}
"""Terminal states of a JobSet, which are also types of its conditions."""

_POD_LIMIT = 100_000
"""Most pods of a replicated Job, which is Kubernetes' limit for the parallelism of an Indexed Job."""

_POD_DELAY = 0.5
"""Seconds; changes of the whole JobSet are seen without its pods, and at once."""

_owners = owner_key(TRAIN_JOBS)

_NAME_LIMIT = 63
_POD_SUFFIX = "-abcde"


class JobSetPlugin:
    """Builds one JobSet with the name of the TrainJob."""

    name = "jobset"
    condition_types: frozenset[str] = frozenset()

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._gone = DeletedPods(reader)
        self._waiting = WaitingJobSets(reader)

    def watches(self) -> Iterator[Watch]:
        """JobSets, their pods that get or lose a problem, and events about the objects below a JobSet."""
        yield Watch(
            JOBSETS,
            train_jobs=_train_jobs_of,
            predicate=on(added=_says_something),
            indexes={CLAIMS: claims_of_jobset, ACTIVE: active_jobsets},
        )
        yield Watch(
            PODS,
            Selection(label_selector=JOBSET_NAME),
            train_jobs=jobset_keys,
            predicate=any_of(self._gone.problem_changed, self._waiting.is_due),
            delay=_POD_DELAY,
            indexes={POD_PROBLEMS: problems_of},
        )
        yield from event_watches(self._reader)

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse what JobSet and Kubernetes would refuse: contradictions, too many pods, names too long for pods."""
        yield from check_references(info)
        yield from check_jobs(info)
        yield from check_pods(info, new)
        yield from _check_sizes(info, new)
        yield from check_replacement(info, old, new)
        yield from warn_of_queue(info, new)

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Each pod of an indexed Job has the DNS name `<job>-<index>` in the JobSet's subdomain."""
        errors = tuple(_check_sizes(info, train_job))
        if errors:
            raise BuildError(*errors)
        for pod_set in info.pod_sets:
            pod_set.endpoints = info.endpoints_of(pod_set)

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The JobSet; a running one never changes, and a suspended one in a few fields only."""
        jobset = build_jobset(info, train_job)

        def revise(existing: Object) -> Revision | None:
            revision = revise_jobset(jobset, existing, self._reader)
            if revision is not None and revision.replacement is not None:
                # The last pod to end has the JobSet looked at again.
                self._waiting.note(key_of(existing), waits=bool(revision.replacement.awaits))
            return revision

        yield Component(JOBSETS, jobset, revise=revise, fixed=fixed_of(jobset), runs_pods=True)

    def suspension(self, train_job: TrainJob) -> Iterator[Component]:
        """The JobSet as it exists, suspended or resumed."""
        jobset = self._jobset(train_job)
        if jobset is not None:
            metadata = {"name": train_job.metadata.name, "namespace": train_job.metadata.namespace}
            yield Component(
                JOBSETS, {"metadata": metadata}, revise=partial(resuspend_jobset, suspend=train_job.spec.suspend)
            )

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """Complete or Failed with the JobSet's reason and message, and the pod that failed first."""
        jobset = self._jobset(train_job)
        if jobset is None:
            return None
        for ended, condition_type in _OUTCOMES.items():
            if _is_ended(jobset, ended):
                condition = find_condition(jobset, ended) or {}
                reason, message = condition.get("reason") or ended, condition.get("message") or f"JobSet is {ended}"
                if condition_type is ConditionType.COMPLETE:
                    return Outcome(condition_type, reason, message)
                attempt = restart_attempt(jobset)
                message = f"{message}{_restarted(jobset)}"
                culprit = self._gone.first_failure(PodIndex(self._reader, jobset), train_job, attempt=attempt)
                jobs = Selection(namespace_of(jobset), label_selector=f"{JOBSET_NAME}={name_of(jobset)}")
                return Outcome(condition_type, reason, message, culprit, jobs)
        return None

    def train_job_status(self, train_job: TrainJob) -> StatusReport:
        """The counts and the scale of the JobSet as the cluster has accepted it, and what keeps its pods from running.

        There is one count for each replicated Job.
        """
        jobset = self._jobset(train_job)
        if jobset is None:
            return StatusReport()
        counts = (jobset.get("status") or {}).get("replicatedJobsStatus") or []
        jobs = [JobStatus.from_object(count) for count in counts]
        goes_on = not any(_is_ended(jobset, ended) for ended in _OUTCOMES)
        problems = self._problems(jobset, train_job) if goes_on else ()
        return StatusReport(jobs, node_scale(jobset), problems, restarts=restart_counts(jobset))

    def _problems(self, jobset: Object, train_job: TrainJob) -> Iterator[PodProblem]:
        """Lost nodes, Jobs and pods that cannot be created or started, pods that are to go, and restarts."""
        index = PodIndex(self._reader, jobset)
        yield from lost_nodes(index)
        yield from suspended_pods(index, train_job)
        if train_job.spec.suspend:
            return
        if (jobset.get("spec") or {}).get("suspend"):
            yield from suspended_by_others(jobset)
            return
        present = waits(index, train_job)
        self._waiting.note(key_of(jobset), waits=bool(present))
        yield from present
        again = list(restarts(index, self._gone, train_job))
        for problem in stopping_pods(index, self._gone, train_job):
            if problem.type is ConditionType.STOPPING or not again:
                yield problem
        yield from again

    def _jobset(self, train_job: TrainJob) -> Object | None:
        """The JobSet that this TrainJob controls; one of the same name may have another owner."""
        key = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)
        jobset = self._reader.get(JOBSETS, key)
        owner = controller_of(jobset) if jobset else None
        return jobset if owner and owner.get("uid") == train_job.metadata.uid else None


def _restarted(jobset: Object) -> str:
    """Why a JobSet does not start again, where it might have."""
    restarts = Restarts.of_jobset(jobset)
    if restarts:
        return f"; it was started again after {restarts}"
    policy = mapping_at(jobset, "spec", "failurePolicy")
    return f"; maxRestarts is {restarts.limit}" if policy and not restarts.limit else ""


def _is_ended(jobset: Object, state: str) -> bool:
    terminal_state = (jobset.get("status") or {}).get("terminalState")
    return bool(terminal_state == state or (not terminal_state and is_condition_true(jobset, state)))


def _train_jobs_of(jobset: CachedObject) -> Iterable[ObjectKey]:
    """The TrainJob that controls a JobSet, or else the one of its name, which waits for the JobSet's deletion."""
    return _owners(jobset) or (jobset.key,)


def _says_something(jobset: CachedObject) -> bool:
    """Predicate: drops the creation of a JobSet, which is our own write; its first status passes."""
    return bool(jobset.get("status"))


def _check_sizes(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse more pods than Kubernetes runs, and names too long for the last pod of the largest size."""
    for pod_set in info.pod_sets:
        if pod_set.replicas * pod_set.most > _POD_LIMIT:
            rule = f"must be at most {_POD_LIMIT}, the most pods that a replicated Job can have"
            yield invalid(_size_field(info, pod_set, train_job), pod_set.replicas * pod_set.most, rule)
    last = {
        f"{info.job_name}-{pod_set.name}-{pod_set.replicas - 1}-{pod_set.most - 1}{_POD_SUFFIX}": pod_set
        for pod_set in info.pod_sets
    }
    longest = max(last, key=len, default="")
    excess = len(longest) - _NAME_LIMIT
    if excess > 0:
        pod_set = last[longest]
        when = f" when there are {pod_set.most} of them" if pod_set.most > pod_set.count else ""
        rule = f"is too long by {excess}: pods get names such as {longest}{when}, of at most {_NAME_LIMIT} characters"
        yield invalid("metadata.name", info.job_name, rule)


def _size_field(info: RuntimeInfo, pod_set: PodSet, train_job: TrainJob) -> str:
    """The field that sets the number of pods."""
    if pod_set.ancestor != Ancestor.TRAINER:
        return f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"
    if pod_set.most > pod_set.count:
        return f"{info.runtime} spec.mlPolicy"
    return nodes_field(info, train_job)
