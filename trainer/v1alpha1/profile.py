"""The profile of v1alpha1: what Kubeflow Trainer (Go) makes of runtimes and TrainJobs."""

from __future__ import annotations

from typing import ClassVar

from trainer.api.trainjob import TrainJob
from trainer.framework import Ancestor, Container, PodSet, RuntimeInfo
from trainer.framework.building.profile import Profile
from trainer.kube.field_errors import FieldError
from trainer.v1alpha1 import trainer_step
from trainer.v1alpha1.decode import is_larger_than_the_model
from trainer.v1alpha1.strategic_merge import strategic_merge


class V1Alpha1Info(RuntimeInfo):
    """What plugins get in a cluster of v1alpha1."""

    __slots__ = ()

    rendezvous_port: ClassVar[int] = 29500
    queues_train_job: ClassVar[bool] = True
    counts_gpus_by_name: ClassVar[bool] = True

    @property
    def gang(self) -> list[PodSet]:
        """All pods, if they can all run at the same time; else nodes and peers, and a launcher that trains with them.

        A launcher that starts after the nodes is no member.
        """
        jobs = self.template.replicated_jobs or []
        waits = self._is_in_order or any(job.depends_on for job in jobs)
        if not (waits and self._trainers):
            return self.pod_sets
        members, launcher = super().gang, self.launcher
        if launcher is None or launcher is self.trainer or not self._follows(launcher):
            return members
        return [each for each in members if each is not launcher]

    @property
    def trains(self) -> bool:
        """Whether the first Job with the label of a trainer has the container `node`; a runtime need not have one."""
        return any(pod_set.main for pod_set in self._trainers[:1])

    def gets_variables(self, train_job: TrainJob) -> bool:
        """Whether something trains, and the TrainJob has `spec.trainer`."""
        return self.trains and train_job.spec.trainer is not None

    def sizing_container(self, train_job: TrainJob) -> Container:
        """The main container, or what the TrainJob alone says of it."""
        trainer = train_job.spec.trainer
        if trainer is None or trainer.resources_per_node is None:
            return self.main_container
        return Container(self.main_container.name, resources=trainer.resources_per_node.to_object())

    def secret_name(self, train_job: TrainJob, suffix: str) -> str:
        """A name without a hash."""
        return f"{train_job.metadata.name}-{suffix}"

    @property
    def _trainers(self) -> list[PodSet]:
        return [pod_set for pod_set in self.pod_sets if pod_set.ancestor == Ancestor.TRAINER]

    @property
    def _is_in_order(self) -> bool:
        policy = self.template.startup_policy
        return policy is not None and policy.startup_policy_order == "InOrder"

    def _follows(self, launcher: PodSet) -> bool:
        dependencies = self.job_of(launcher).depends_on or []
        return self._is_in_order or any(each.name == self.trainer.name for each in dependencies)


class V1Alpha1Profile(Profile):
    """The order of Jobs is JobSet's, and what overrides add is merged as by a strategic merge patch."""

    info = V1Alpha1Info
    validates_builds = False
    mark = staticmethod(trainer_step.mark)
    apply_trainer = staticmethod(trainer_step.apply)
    apply_env = staticmethod(trainer_step.apply_env)
    merge = staticmethod(strategic_merge)

    def has_bound(self, error: FieldError) -> bool:
        """Whether the CRDs of v1alpha1 have it, too."""
        return not is_larger_than_the_model(error)


V1ALPHA1_PROFILE = V1Alpha1Profile()
