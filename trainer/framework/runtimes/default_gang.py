"""The gang scheduling of runtimes without podGroupPolicy, by the setting gangScheduling of the manager.

A TrainJob is first built as if its runtime had the policy, and its snapshot has it. Setting and cluster may change
later: the TrainJob keeps what it was first built with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from trainer.kube.objects import Object, mapping_at, metadata_of, objects_in
from trainer.workloads import DEFAULT_SCHEDULER

DEFAULT_GANG = "trainer.kubeflow.org/default-gang"
"""Annotation of a runtime in a snapshot: the member of podGroupPolicy that comes from the manager's gangScheduling."""

USUAL_SCHEDULERS: Final[Mapping[str, str]] = {
    "workload": DEFAULT_SCHEDULER,
    "coscheduling": "scheduler-plugins-scheduler",
    "volcano": "volcano",
}
"""What each gang scheduler is called unless it is installed under another name, by the member of podGroupPolicy."""


class DefaultGang:
    """Gives runtimes a podGroupPolicy that have none.

    A runtime whose pods name another scheduler has none either: that scheduler does not know the gang.

    Args:
        choose: returns the member of podGroupPolicy that they get at present; empty for none.
        scheduler_name: of pods that name none. Defaults to that in `USUAL_SCHEDULERS`.
    """

    def __init__(self, choose: Callable[[], str], scheduler_name: str = "") -> None:
        self._choose = choose
        self._scheduler_name = scheduler_name

    @property
    def source(self) -> str:
        """The member of podGroupPolicy that runtimes without one get at present; empty for none."""
        return self._choose()

    @property
    def sources(self) -> tuple[str, ...]:
        """All that they may have got, the present one first."""
        return tuple(dict.fromkeys((self.source, "", *USUAL_SCHEDULERS)))

    def applied(self, runtime: Object, source: str | None = None) -> Object:
        """The runtime with the policy; the same object where nothing changes.

        Args:
            runtime: of v2alpha1, as it is stored or written; it is not changed.
            source: the member of podGroupPolicy. Defaults to the present one.
        """
        source = self.source if source is None else source
        spec = mapping_at(runtime, "spec")
        if not source or not spec or spec.get("podGroupPolicy") is not None:
            return runtime
        suitable = {self._scheduler_name or USUAL_SCHEDULERS[source]}
        if source == "workload":  # every profile of kube-scheduler knows these gangs
            suitable.add(USUAL_SCHEDULERS[source])
        jobs = objects_in(mapping_at(spec, "template", "spec").get("replicatedJobs"))
        named = {_pod_spec(job).get("schedulerName") or "" for job in jobs} - {""}
        if not named <= suitable:
            return runtime
        spec = spec | {"podGroupPolicy": {source: {}}}
        scheduler = self._scheduler_name or ("" if source == "workload" else USUAL_SCHEDULERS[source])
        if scheduler and named <= {scheduler}:  # pods of a gang have the same
            spec = _scheduled(spec, scheduler)
        metadata = metadata_of(runtime)
        annotations = mapping_at(metadata, "annotations") | {DEFAULT_GANG: source}
        return runtime | {"metadata": metadata | {"annotations": annotations}, "spec": spec}


NO_GANG: Final = DefaultGang(lambda: "")
"""Leaves runtimes as they are."""


def _pod_spec(job: Object) -> Object:
    return mapping_at(job, "template", "spec", "template", "spec")


def _scheduled(spec: Object, scheduler: str) -> Object:
    """The spec of a runtime with this scheduler in each pod template that names none."""
    template, jobset = mapping_at(spec, "template"), mapping_at(spec, "template", "spec")
    jobs = jobset.get("replicatedJobs")
    if not isinstance(jobs, list):
        return spec
    jobs = [_with_scheduler(job, scheduler) for job in jobs]
    return spec | {"template": template | {"spec": jobset | {"replicatedJobs": jobs}}}


def _with_scheduler(job: Object, scheduler: str) -> Object:
    pod_spec = _pod_spec(job)
    if not pod_spec or pod_spec.get("schedulerName"):
        return job
    job_template = job["template"]
    pod_template = job_template["spec"]["template"] | {"spec": pod_spec | {"schedulerName": scheduler}}
    return job | {"template": job_template | {"spec": job_template["spec"] | {"template": pod_template}}}
