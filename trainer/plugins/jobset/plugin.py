"""The plugin: which resources it watches, what it builds, and what the JobSet's status means for the TrainJob."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from trainer.api.trainjob_status import ConditionType, JobStatus
from trainer.framework.component import Component
from trainer.framework.extension_points import Outcome, Watch
from trainer.framework.runtime_info import Ancestor
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import ObjectKey, controller_of, find_condition, is_condition_true
from trainer.kube.resource import JOBSETS, PODS
from trainer.kube.selection import Selection
from trainer.plugins.jobset.builder import build_jobset
from trainer.plugins.jobset.failure import first_failure
from trainer.plugins.jobset.revision import resuspend_jobset, revise_jobset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework.reader import Reader
    from trainer.framework.runtime_info import PodSet, RuntimeInfo
    from trainer.kube.objects import Object

JOBSET_NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
"""Label of all Jobs and pods of a JobSet."""

_OUTCOMES: dict[str, Literal[ConditionType.COMPLETE, ConditionType.FAILED]] = {
    "Completed": ConditionType.COMPLETE,
    "Failed": ConditionType.FAILED,
}
"""Terminal states of a JobSet, which are also types of its conditions."""

_POD_LIMIT = 100_000
"""Pods of a replicated Job: Kubernetes has this limit for the parallelism of an Indexed Job."""

_NAME_LIMIT = 63
_POD_SUFFIX = "-abcde"


class JobSetPlugin:
    """Turns a TrainJob into one JobSet of the same name."""

    name = "jobset"

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """JobSets, and their pods for the reason of a failure."""
        yield Watch(JOBSETS)
        yield Watch(PODS, Selection(label_selector=JOBSET_NAME_LABEL), triggers=False)

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:  # noqa: ARG002
        """Refuse more pods than Kubernetes runs, and names from which JobSet cannot make pod names."""
        for pod_set in info.pod_sets:
            if pod_set.replicas * pod_set.count > _POD_LIMIT:
                yield FieldError(
                    _size_field(info, pod_set, new),
                    f"asks for {pod_set.replicas * pod_set.count} pods in {pod_set.name}, must be at most {_POD_LIMIT}",
                )
        pods = [
            f"{info.job_name}-{pod_set.name}-{pod_set.replicas - 1}-{pod_set.count - 1}{_POD_SUFFIX}"
            for pod_set in info.pod_sets
        ]
        longest = max(pods, key=len)
        excess = len(longest) - _NAME_LIMIT
        if excess > 0:
            yield FieldError(
                "metadata.name",
                f"is too long by {excess}: pods get names such as {longest}, of at most {_NAME_LIMIT} characters",
            )

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:  # noqa: ARG002
        """Each pod of an indexed Job has the DNS name `<job>-<index>` in the JobSet's subdomain."""
        for pod_set in info.pod_sets:
            pod_set.endpoints = tuple(
                info.endpoint(pod_set, replica, pod)
                for replica in range(pod_set.replicas)
                for pod in range(pod_set.count)
            )

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The JobSet; while it runs it is left alone, and while it is suspended only a few fields may change."""
        jobset = build_jobset(info, train_job)
        yield Component(JOBSETS, jobset, revise=partial(revise_jobset, jobset))

    def suspension(self, train_job: TrainJob) -> Iterator[Component]:
        """The JobSet as it exists, suspended or resumed."""
        jobset = self._jobset(train_job)
        if jobset is not None:
            metadata = {"name": train_job.metadata.name, "namespace": train_job.metadata.namespace}
            yield Component(
                JOBSETS, {"metadata": metadata}, revise=partial(resuspend_jobset, suspend=train_job.spec.suspend)
            )

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """Complete or Failed when the JobSet is, with its reason and message, and the pod that failed first."""
        jobset = self._jobset(train_job)
        if jobset is None:
            return None
        terminal_state = (jobset.get("status") or {}).get("terminalState")
        for ended, condition_type in _OUTCOMES.items():
            if terminal_state == ended or (not terminal_state and is_condition_true(jobset, ended)):
                condition = find_condition(jobset, ended) or {}
                messages = [condition.get("message") or f"JobSet is {ended}"]
                if condition_type is ConditionType.FAILED:
                    messages += first_failure(self._pods(train_job))
                return Outcome(condition_type, condition.get("reason") or ended, "; ".join(messages))
        return None

    def jobs_status(self, train_job: TrainJob) -> list[JobStatus] | None:
        """The counts of the JobSet, one entry for each replicated Job."""
        jobset = self._jobset(train_job)
        if jobset is None:
            return None
        counts = (jobset.get("status") or {}).get("replicatedJobsStatus") or []
        return [JobStatus.from_object(count) for count in counts]

    def _jobset(self, train_job: TrainJob) -> Object | None:
        """The JobSet of this very TrainJob: one of the same name may be somebody else's."""
        key = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)
        jobset = self._reader.get(JOBSETS, key)
        owner = controller_of(jobset) if jobset else None
        return jobset if owner and owner.get("uid") == train_job.metadata.uid else None

    def _pods(self, train_job: TrainJob) -> list[Object]:
        return self._reader.list(PODS, train_job.metadata.namespace or "", {JOBSET_NAME_LABEL: train_job.metadata.name})


def _size_field(info: RuntimeInfo, pod_set: PodSet, train_job: TrainJob) -> str:
    """The field that says how many pods there are."""
    if pod_set.ancestor != Ancestor.TRAINER:
        return f"{info.runtime} spec.template.spec.replicatedJobs[{pod_set.name}]"
    is_own = train_job.spec.trainer is not None and train_job.spec.trainer.num_nodes is not None
    return "spec.trainer.numNodes" if is_own else f"{info.runtime} spec.mlPolicy.numNodes"
