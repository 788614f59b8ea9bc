"""The job of a trial as a TrainJob: that of `batch/v1`, of the Training and MPI Operator, or a TrainJob."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.kueue import queued_as_jobset
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.losses import Losses
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.field_errors import FieldError, forbidden, not_supported, required
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.v1alpha1.decode import decode, is_decodable
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.encode import encode, is_encodable
from trainer_v1_jobs.api.kinds import KINDS, JobKind
from trainer_v1_jobs.api.reading import kind_of, normalised
from trainer_v1_jobs.conversion import Conversion, convert
from trainer_v1_jobs.conversion.encoding import encoded
from trainer_v1_jobs.conversion.pods import TRAINER
from trainer_v1_jobs.katib.batch_job import convert_job, main_of
from trainer_v1_jobs.katib.experiment import TrialTemplate
from trainer_v1_jobs.katib.findings import Findings
from trainer_v1_jobs.katib.placeholders import TRIAL, Placeholders, unreachable

_TEMPLATE: Final = "spec.trialTemplate"
_JOB: Final = ("batch/v1", "Job")
_KEPT_METADATA: Final = ("labels", "annotations")
_TTL: Final = "ttlSecondsAfterFinished"
_DEFAULT_CONDITIONS: Final = frozenset(
    f'status.conditions.#(type=="{type_}")#|#(status=="True")#' for type_ in ("Complete", "Succeeded", "Failed")
)
_JOINED: Final = frozenset({"TFJob", "MPIJob"})
"""Kinds whose roles get the variables of a TrainJob although they are Jobs of their own."""
_FIRST_PODS: Final[Mapping[str, frozenset[str]]] = {
    "training.kubeflow.org/job-role": frozenset({"master"}),
    "training.kubeflow.org/replica-type": frozenset({"master", "launcher", "chief"}),
    "mpi-job-role": frozenset({"launcher"}),
    "jobset.sigs.k8s.io/replicatedjob-name": frozenset({"node", "launcher"}),
    "batch.kubernetes.io/job-completion-index": frozenset({"0"}),
}
"""Labels of pods whose progress the manager follows in any case."""


@dataclass(frozen=True, slots=True)
class Trials:
    """What the trials of an Experiment are made of, in the shape of the version that the cluster serves."""

    train_job: Object
    runtime: Object | None
    """The TrainingRuntime that was written for them; None if there is one that says the same."""


def trials_of(
    template: TrialTemplate,
    findings: Findings,
    *,
    parameters: Iterable[str],
    metadata: Object,
    version: Version,
    runtimes: Iterable[Object],
) -> Trials | None:
    """The TrainJob of trials; None if their job is refused.

    Args:
        template: of the Experiment.
        findings: losses and errors are added to them.
        parameters: names of the parameters.
        metadata: name and namespace of the Experiment.
        version: that the cluster serves.
        runtimes: ClusterTrainingRuntimes that the cluster has, in the shape of v2alpha1.
    """
    _check_template(template, findings)
    spec = template.trial_spec
    if spec is None:
        return None
    spec, kind = copy.deepcopy(spec), kind_of(spec)
    if kind is None and not _is_job(spec) and not _is_train_job(spec):
        findings.refuse(_unknown(spec))
        return None
    if kind is not None:
        try:
            spec = normalised(spec, kind)
        except InvalidObjectError as error:
            findings.errors.extend(_placed(error.errors))
            return None
    placeholders = Placeholders(template.trial_parameters or [], parameters, spec, findings)
    for container in _trainers(spec, kind, template.primary_container_name):
        placeholders.expand_in(container)
    spec = placeholders.written_out(spec, TRIAL)
    if findings.errors:
        return None
    own = {name: value for name, value in mapping_at(spec, "metadata").items() if name in _KEPT_METADATA}
    spec["metadata"] = own | metadata
    _drop_fields(spec, findings)
    if kind is None and not _is_job(spec):
        return Trials(_of_version(spec, version, findings), None)
    try:
        if kind is None:
            result = convert_job(spec, template.primary_container_name, version=version, runtimes=runtimes)
        else:
            result = _of_operator(spec, kind, template, findings, version=version, runtimes=runtimes)
    except InvalidObjectError as error:
        findings.errors.extend(_placed(error.errors))
        return None
    return _encoded(result, version, findings)


def _check_template(template: TrialTemplate, findings: Findings) -> None:
    source = template.config_map
    if template.trial_spec is None and source is not None:
        where = f"{source.config_map_name} -n {source.config_map_namespace}"
        rule = (
            f"the job must be in the Experiment: put what kubectl get configmap {where} -o yaml shows under "
            f"{source.template_path} as trialSpec in its place"
        )
        findings.refuse(forbidden(f"{_TEMPLATE}.configMap", rule))
    elif template.trial_spec is None:
        findings.refuse(required(f"{_TEMPLATE}.trialSpec", "the job of the trials"))
    for name, condition in (
        ("successCondition", template.success_condition),
        ("failureCondition", template.failure_condition),
    ):
        if condition and condition.replace(" ", "") not in _DEFAULT_CONDITIONS:
            rule = "is left out: a trial has succeeded when its TrainJob is complete and has a value of the objective"
            findings.lose(f"{_TEMPLATE}.{name}", rule)
    labels = template.primary_pod_labels or {}
    if any(value not in _FIRST_PODS.get(name, ()) for name, value in labels.items()):
        rule = "is left out: the metrics of a trial are those of its first node, or of its launcher"
        findings.lose(f"{_TEMPLATE}.primaryPodLabels", rule)


def _is_job(spec: Object) -> bool:
    return (spec.get("apiVersion"), spec.get("kind")) == _JOB


def _is_train_job(spec: Object) -> bool:
    return spec.get("kind") == TRAIN_JOBS.kind and (is_decodable(spec) or is_encodable(spec))


def _unknown(spec: Object) -> FieldError:
    kinds = [" ".join(_JOB), f"{TRAIN_JOBS.group} TrainJob", *(f"{version} {kind}" for version, kind in KINDS)]
    return not_supported(TRIAL, f"{spec.get('apiVersion')} {spec.get('kind')}", kinds)


def _trainers(spec: Object, kind: JobKind | None, primary: str | None) -> Iterator[Object]:
    """What trains in a job: a container of each role, or the trainer of a TrainJob; nothing is checked yet."""
    if kind is not None:
        wanted = kind.container or mapping_at(spec, "spec").get("mainContainer")
        for role in mapping_at(spec, "spec", kind.replicas_field).values():
            main = main_of(objects_in(mapping_at(role, "template", "spec").get("containers")), wanted)
            if main is not None:
                yield main
    elif _is_job(spec):
        main = main_of(objects_in(mapping_at(spec, "spec", "template", "spec").get("containers")), primary)
        if main is not None:
            yield main
    else:
        yield mapping_at(spec, "spec", "trainer")


def _drop_fields(spec: Object, findings: Findings) -> None:
    """Leave out what the sweep decides; trials stay with their curves, from which the next ones are made."""
    ttl = f"is left out: trials stay, to be compared; {_TTL} of the OptimizationJob deletes all of them"
    suspend = "is left out: set suspend of the OptimizationJob"
    for steps in (("spec",), ("spec", "runPolicy")):
        holder = mapping_at(spec, *steps)
        for name, rule in ((_TTL, ttl), ("suspend", suspend)):
            if (value := holder.pop(name, None)) is not None and value is not False:
                findings.lose(".".join((TRIAL, *steps, name)), rule)


def _of_operator(
    job: Object,
    kind: JobKind,
    template: TrialTemplate,
    findings: Findings,
    *,
    version: Version,
    runtimes: Iterable[Object],
) -> Conversion:
    job = _with_one_restart_policy(job, kind, findings)
    if kind.container and template.primary_container_name not in {None, "", kind.container}:
        rule = f"is left out: the metrics are those of {kind.container}, which trains"
        findings.lose(f"{_TEMPLATE}.primaryContainerName", rule)
    return convert(job, kind, version=version, runtimes=runtimes)


def _with_one_restart_policy(job: Object, kind: JobKind, findings: Findings) -> Object:
    """Have roles with equal pods start them again alike, so that all of them are nodes, which get the parameters."""
    if kind.resource.kind in _JOINED:
        return job
    roles = mapping_at(job, "spec", kind.replicas_field)
    present = [name for name in kind.roles if mapping_at(roles, name).get("replicas") != 0 and name in roles]
    templates = [mapping_at(roles, name).get("template") for name in present]
    policies = [
        mapping_at(roles, name).get("restartPolicy") or kind.restart_policies.get(name, kind.restart_policy)
        for name in present
    ]
    if len(set(map(str, policies))) < 2 or any(each != templates[0] for each in templates):
        return job
    first = policies[0]
    for name, policy in zip(present, policies, strict=True):
        if policy != first:
            rule = f"becomes {first}, as that of {present[0]}: pods that get the parameters of trials are alike"
            findings.lose(f"{TRIAL}.spec.{kind.replicas_field}[{name}].restartPolicy", rule)
    alike = {name: role | {"restartPolicy": first} if name in present else role for name, role in roles.items()}
    return job | {"spec": job["spec"] | {kind.replicas_field: alike}}


def _encoded(result: Conversion, version: Version, findings: Findings) -> Trials | None:
    """A conversion for a version, if all pods that use parameters get them."""
    if result.runtime is not None:
        errors = [error for job, main in _reached(result.runtime) if (error := unreachable(job, main)) is not None]
        findings.errors.extend(errors[:1])
        if errors:
            return None
    result = encoded(result, version)
    findings.losses.found.extend(_placed(result.findings))
    return Trials(result.train_job, result.runtime)


def _reached(runtime: Object) -> Iterator[tuple[Object, str | None]]:
    """The Jobs of a runtime, each with the container that gets the variables of a TrainJob."""
    policy = mapping_at(runtime, "spec", "mlPolicy")
    for job in objects_in(mapping_at(runtime, "spec", "template", "spec").get("replicatedJobs")):
        is_trainer = mapping_at(job, "template", "metadata", "labels").get(ANCESTOR_LABEL) == "trainer"
        containers = objects_in(mapping_at(job, "template", "spec", "template", "spec").get("containers"))
        main = main_of(containers, TRAINER)
        is_reached = is_trainer or "tensorflow" in policy or "mpi" in policy
        yield job, main.get("name") if is_reached and main is not None else None


def _of_version(train_job: Object, version: Version, findings: Findings) -> Object:
    """A TrainJob for a version."""
    if version == "v2alpha1" and is_decodable(train_job):
        result = decode(train_job)
        losses = Losses([*result.losses])
        train_job = queued_as_jobset(result.object, losses)
        findings.losses.found.extend(_placed(losses.found))
        return train_job
    if version == "v1alpha1" and is_encodable(train_job):
        other = encode(train_job)
        findings.losses.found.extend(_placed(other.losses))
        return other.object
    return train_job


def _placed(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Errors of the job of a trial, with their paths in the Experiment."""
    for error in errors:
        yield replace(error, field=f"{TRIAL}.{error.field}" if error.field else TRIAL)
