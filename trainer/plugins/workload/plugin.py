"""Workload: gang scheduling by Kubernetes itself (KEP-3015 of Kubeflow Trainer).

The pods that train name their PodGroup in `spec.schedulingGroup`; kube-scheduler binds none of them before it has found
a place for `minCount` of them. The PodGroup is what schedules; the Workload says to people and tools that it belongs to
the TrainJob.

Spec and pods of a PodGroup do not change. Where the TrainJob asks for another gang, both objects are deleted and
created again while nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainer.api.trainingruntime import WorkloadPodGroupPolicySource
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework import (
    CLUSTER_LACKS,
    Ancestor,
    BuildError,
    Component,
    Finding,
    PodSet,
    Reader,
    Replacement,
    Revision,
    RuntimeInfo,
    Watch,
    pod_spec_of,
    runs_pods,
    scheduler_warnings,
    unique_name,
)
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import Object, ObjectKey, objects_in
from trainer.kube.resource import Resource
from trainer.plugins.workload.versions import (
    CLAIMS,
    DISRUPTION,
    GATES,
    MEMBERSHIP,
    SCHEDULING_GROUP,
    TOPOLOGY,
    VERSIONS,
    WorkloadVersion,
    served_version,
)
from trainer.workloads import DEFAULT_SCHEDULER, JOBSETS

TEMPLATE = "trainer"
"""Name of the template of the gang in its Workload, and part of the name of its PodGroup (KEP-3015)."""

_UNSERVED = (
    "the cluster does not serve podgroups.scheduling.k8s.io; it needs Kubernetes 1.36 or later with "
    "--feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true (Kubernetes 1.36: "
    "v1alpha2) of kube-apiserver, and the feature gate GenericWorkload of kube-controller-manager and kube-scheduler "
    "(Kubernetes 1.36: GangScheduling, too)"
)
_OLD_JOBSET = "the JobSet of the cluster does not keep schedulingGroup of pods; install JobSet v0.12 or later"
_UNPROTECTED = "kube-controller-manager has taken its finalizer off, which it does when no pod is a member any more"
_NO_GANG = "; podGroupPolicy: {} in the runtime keeps gangScheduling of the manager's configuration from making a gang"
_OTHER_SCHEDULER = (
    "is {scheduler}, which may not know PodGroups of Kubernetes and then decides about each pod alone; leave it out "
    "for the default scheduler"
)


class Workload:
    """Builds Workload and PodGroup of the pods that train and assigns these to the group."""

    name = "workload"
    pod_group_policy_sources = frozenset({"workload"})

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """PodGroups and Workloads, if the cluster serves them, and JobSets."""
        for version in VERSIONS:
            yield Watch(version.pod_groups, optional=True, dry_runs=version.dry_runs())
            yield Watch(version.workloads, optional=True)
        yield Watch(JOBSETS, triggers=False, dry_runs={MEMBERSHIP: SCHEDULING_GROUP})

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse what the cluster does not serve; warn of other schedulers."""
        policy = info.pod_group_policy.workload
        if policy is None:
            return
        yield from self._lacking(info, policy)
        if not info.has_default_gang:  # which is for schedulers that know it
            yield from scheduler_warnings(
                info, _gang(info), lambda name: name in {"", DEFAULT_SCHEDULER}, _OTHER_SCHEDULER
            )

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Name the PodGroup in the pods of the gang."""
        if info.pod_group_policy.workload is not None:
            for pod_set in _gang(info):
                pod_set.scheduling_group = unique_name(train_job, TEMPLATE)

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """The Workload and its PodGroup; none if the gang would have no members.

        Raises:
            BuildError: the pods would never start, or the cluster would make less of the gang than is asked for.
        """
        policy = info.pod_group_policy.workload
        size = sum(pod_set.least for pod_set in _gang(info)) if policy is not None else 0
        if policy is None or not size:
            return
        version = served_version(self._reader)
        if version is None:
            raise BuildError(_unserved(info))
        name = unique_name(train_job, TEMPLATE)
        errors = [*_order_errors(info), *_claim_errors(info, policy), *_mixed(info)]
        if self._reader.get(version.pod_groups, ObjectKey(train_job.metadata.namespace or "", name)) is None:
            errors += self._lacking(info, policy)
        if errors:
            raise BuildError(*errors)
        group = self._group(info, policy, version, size)
        controller = {"apiGroup": TRAIN_JOBS.group, "kind": TRAIN_JOBS.kind, "name": info.job_name}
        templates = {"controllerRef": controller, "podGroupTemplates": [{"name": TEMPLATE} | group]}
        yield self._component(version.workloads, info.job_name, templates, train_job)
        reference = version.template_reference(info.job_name, TEMPLATE)
        yield self._component(version.pod_groups, name, reference | group, train_job, awaits=_UNPROTECTED)

    def _accepts(self, version: WorkloadVersion, dry_run: str) -> bool:
        return not self._reader.refusal(version.pod_groups, dry_run)

    def _lacking(self, info: RuntimeInfo, policy: WorkloadPodGroupPolicySource) -> Iterator[FieldError]:
        """What the cluster does not serve, or refuses."""
        if self._reader.refusal(JOBSETS, MEMBERSHIP):
            yield forbidden(f"{info.runtime} {_field()}", _OLD_JOBSET, code=CLUSTER_LACKS)
        version = served_version(self._reader)
        if version is None:
            yield _unserved(info)
            return
        if policy.topology_key is not None and not self._accepts(version, TOPOLOGY):
            yield _lacks_gate(info, TOPOLOGY)
        if policy.disruption_mode == "PodGroup" and not self._accepts(version, DISRUPTION):
            yield _lacks_gate(info, DISRUPTION)

    def _group(
        self, info: RuntimeInfo, policy: WorkloadPodGroupPolicySource, version: WorkloadVersion, size: int
    ) -> Object:
        """What PodGroup and template have in common."""
        group: Object = {"schedulingPolicy": {"gang": {"minCount": size}}}
        if policy.topology_key is not None:
            group["schedulingConstraints"] = {"topology": [{"key": policy.topology_key}]}
        if policy.disruption_mode == "PodGroup":
            group["disruptionMode"] = version.disrupted_together
        specs = [_pod_spec(info, pod_set) for pod_set in _gang(info)]
        classes = [spec["priorityClassName"] for spec in specs if spec.get("priorityClassName")]
        if classes and self._accepts(version, DISRUPTION):  # both have one gate
            group["priorityClassName"] = classes[-1]
        if policy.resource_claims and self._accepts(version, CLAIMS):
            claims = {claim.get("name"): claim for claim in objects_in(specs[0].get("resourceClaims"))}
            group["resourceClaims"] = [claims[name] for name in policy.resource_claims]
        return group

    def _component(
        self, resource: Resource, name: str, spec: Object, train_job: TrainJob, *, awaits: str = ""
    ) -> Component:
        metadata = {"name": name, "namespace": train_job.metadata.namespace}
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
        jobset = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)

        def revise(_existing: Object) -> Revision | None:
            # Also while the TrainJob is suspended: its pods run until the JobSet is.
            return None if runs_pods(self._reader, jobset) else Revision(obj, replacement=Replacement())

        return Component(resource, obj, revise=revise, fixed=spec, awaits=awaits, delete_when_finished=True)


def _gang(info: RuntimeInfo) -> list[PodSet]:
    """The members of `RuntimeInfo.gang` that train; where none is said to, all that are no other step.

    In v1alpha1 `RuntimeInfo.gang` may have initializers, too.
    """
    members = [each for each in info.gang if each.ancestor == Ancestor.TRAINER or each.main is not None]
    return members or [each for each in info.gang if each.ancestor is None]


def _pod_spec(info: RuntimeInfo, pod_set: PodSet) -> Object:
    return pod_spec_of(info.job_of(pod_set))


def _field(name: str = "") -> str:
    return f"spec.podGroupPolicy.workload{name and '.'}{name}"


def _unserved(info: RuntimeInfo) -> FieldError:
    return forbidden(f"{info.runtime} {_field()}", _UNSERVED, code=CLUSTER_LACKS)


def _lacks_gate(info: RuntimeInfo, name: str) -> FieldError:
    rule = f"the API server refuses it; switch on the feature gate {GATES[name]} of kube-apiserver and kube-scheduler"
    return forbidden(f"{info.runtime} {_field(name)}", rule, code=CLUSTER_LACKS)


def _mixed(info: RuntimeInfo) -> Iterator[FieldError]:
    """Pods of other schedulers or priorities than the first, with which kube-scheduler places none of the gang."""
    gang, remedy = _gang(info), _NO_GANG if info.has_default_gang else ""
    for name, default in (("schedulerName", DEFAULT_SCHEDULER), ("priorityClassName", "")):
        stated = [_pod_spec(info, pod_set).get(name) or default for pod_set in gang]
        for pod_set, value in zip(gang, stated, strict=True):
            if value != stated[0]:
                path = f"spec.template.spec.replicatedJobs[{pod_set.name}].template.spec.template.spec.{name}"
                rule = (
                    f"must be that of {gang[0].name}, {stated[0] or 'none'}: all pods of a gang have the same{remedy}"
                )
                yield invalid(f"{info.runtime} {path}", value, rule)


def _order_errors(info: RuntimeInfo) -> Iterator[FieldError]:
    """Members that start after other members, which wait for them to find a place together; sizes are final."""
    gang = [each for each in _gang(info) if each.least]
    names = {each.name for each in gang}
    for pod_set in gang:
        for index, dependency in enumerate(info.job_of(pod_set).depends_on or []):
            if dependency.name in names:
                path = f"spec.template.spec.replicatedJobs[{pod_set.name}].dependsOn[{index}].name"
                rule = "must be no member of the gang, whose pods start together; podGroupPolicy: {} is no gang"
                yield invalid(f"{info.runtime} {path}", dependency.name, rule)


def _claim_errors(info: RuntimeInfo, policy: WorkloadPodGroupPolicySource) -> Iterator[FieldError]:
    """Claims of the group that pods lack, or that are not the same in all of them."""
    gang = _gang(info)
    for name in policy.resource_claims or ():
        path, first = f"{info.runtime} {_field('resourceClaims')}", None
        for pod_set in gang:
            claims = objects_in(_pod_spec(info, pod_set).get("resourceClaims"))
            claim = next((each for each in claims if each.get("name") == name), None)
            if claim is None:
                rule = f"names no claim in spec.resourceClaims of the pods of {pod_set.name}; add it there"
                yield invalid(path, name, rule)
            elif first is not None and claim != first:
                rule = f"names another claim in {pod_set.name} than in {gang[0].name}; a gang shares one"
                yield invalid(path, name, rule)
            first = first or claim
