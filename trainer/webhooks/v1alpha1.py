"""Admission of TrainJobs and runtimes of v1alpha1, by the rules of the released Trainer and in its words.

What it refuses is refused with 403 and the same text. What it accepts is accepted; where a trial build
shows that it cannot become Jobs, its author is warned.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metadata import ObjectMetadata
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, DEPRECATED, SUPPORT_LABEL, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, RuntimeRef, TrainJob, TrainJobSpec
from trainer.api.v1alpha1.client import SERVED, decoded
from trainer.api.v1alpha1.decode import override_paths
from trainer.framework.plugin_api.errors import AdmissionWarning, BuildError, Review
from trainer.framework.plugin_api.runtime_info import ANCESTOR_LABEL
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError
from trainer.framework.status.status import has_ended
from trainer.kube.clock import timestamp
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import is_being_deleted, labels_of, name_of
from trainer.kube.webhook.admission import AdmissionResponse, Operation
from trainer.webhooks.handlers import Admission
from trainer.webhooks.runtime import review_runtime as review_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.api.jobset import ReplicatedJob
    from trainer.api.trainingruntime import Runtime
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.runtimes.runtimes import RuntimeSource
    from trainer.kube.clock import Clock
    from trainer.kube.metrics import Metrics
    from trainer.kube.objects import Object
    from trainer.kube.webhook.admission import AdmissionRequest

_GROUP: Final = TRAIN_JOBS.group
_PATCHES: Final = "spec.runtimePatches"
_NODE: Final = "node"
_INITIALIZERS: Final = {"dataset": "dataset-initializer", "model": "model-initializer"}
_MAIN_CONTAINERS: Final = {step: step for step in _INITIALIZERS.values()} | {"trainer": _NODE}
"""The container that a Job with this ancestor must have."""
_RESERVED: Final = {
    "torch": ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    "mpi": (
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
    ),
    "xgboost": ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}
_FLUX_INSTALLER: Final = "flux-installer"
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_LONGEST_HOST: Final = 253
_ENV_ELSEWHERE: Final = frozenset(_MAIN_CONTAINERS.values())
"""Containers whose environment is that of `trainer` and `initializer`."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_MOST_WARNINGS: Final = 10
_MOST_ERRORS: Final = 50
_LONGEST_TEXT: Final = 2000
"""Characters of an error; it may repeat a value."""


class V1Alpha1Admission(Admission):
    """Admits TrainJobs and runtimes of v1alpha1.

    Args:
        pipeline: the plugins.
        runtimes: finds the runtimes of TrainJobs.
        clock: for the times of runtime patches.
        metrics: see `Admission`. Defaults to none.
    """

    resources: ClassVar = tuple(SERVED.values())

    def __init__(
        self, pipeline: Pipeline, runtimes: RuntimeSource, clock: Clock, *, metrics: Metrics | None = None
    ) -> None:
        super().__init__(pipeline, runtimes, metrics=metrics)
        self._clock = clock

    async def default_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Set the times of runtime patches; all other defaults are in the schema."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return AdmissionResponse.mutate(with_times(request.object, request.old_object, timestamp(self._clock.now())))

    async def default_runtime(self, request: AdmissionRequest) -> AdmissionResponse:  # noqa: ARG002 - see Admission
        """Nothing: the defaults of a runtime are in the schema."""
        return AdmissionResponse.allow()

    async def validate_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse what the released Trainer refuses, and warn of what cannot be built."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        obj, must_exist = _placed(request.object, request), request.operation is Operation.CREATE
        review = await review_train_job(obj, request.old_object, self._pipeline, self._runtimes, must_exist=must_exist)
        return _response(review)

    async def validate_runtime(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse what the released Trainer refuses, and warn of what no TrainJob can be built on."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return _response(review_runtime(_placed(request.object, request), self._pipeline))


async def review_train_job(
    obj: Object, old: Object | None, pipeline: Pipeline, runtimes: RuntimeSource, *, must_exist: bool
) -> Review:
    """Errors for which the released Trainer refuses a TrainJob of v1alpha1, and warnings of what cannot be built.

    Args:
        obj: the TrainJob, with its kind and namespace.
        old: what it replaces.
        pipeline: the plugins.
        runtimes: finds the runtime.
        must_exist: whether a missing runtime is an error, as at the creation; else it is a warning, unless a new
            TrainJob has probably mistyped the name.
    """
    ref = _mapping(_mapping(obj, "spec"), "runtimeRef")
    kind, group = ref.get("kind") or CLUSTER_TRAINING_RUNTIMES.kind, ref.get("apiGroup") or _GROUP
    if (kind, group) not in ((each.kind, _GROUP) for each in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)):
        return Review((FieldError("", f"unsupported runtime: {kind}.{group}"),))
    errors = (*_manager_errors(obj), *_change_errors(obj, old))
    try:
        runtime = await runtimes.of(_reference(decoded(obj)))
    except RuntimeNotFoundError as error:
        words = f"specified {kind[0].lower()}{kind[1:]} must be created before the TrainJob is created"
        text = f"{kind} {error.key.name} not found: {words}{error.present.hint(error.key.name)}"
        if must_exist or (old is None and error.present.is_mistake):
            return Review((*errors, invalid("spec.runtimeRef", ref, text)))
        # A runtime may go once a TrainJob was built on it; the TrainJob can still be suspended and labelled.
        return Review(errors, (AdmissionWarning("", text),))
    except BuildError as error:
        return Review(errors, tuple(map(_as_warning, error.errors)))
    if errors := (*errors, *_fit_errors(obj, runtime)):
        return Review(errors, tuple(_deprecation(runtime)))
    return Review((), (*_deprecation(runtime), *_trial_warnings(obj, runtime, pipeline)))


def review_runtime(obj: Object, pipeline: Pipeline) -> Review:
    """Errors for which the released Trainer refuses a runtime of v1alpha1, and warnings of what cannot be built."""
    model = decoded(obj)
    trial = review_model(model | {"apiVersion": TRAIN_JOBS.api_version}, None, pipeline)
    return Review(tuple(_ancestor_errors(model)), (*map(_as_warning, trial.errors), *trial.warnings))


def _trial_warnings(obj: Object, runtime: Runtime, pipeline: Pipeline) -> Iterator[AdmissionWarning]:
    """What keeps the TrainJob from becoming Jobs, with paths of v1alpha1."""
    if is_being_deleted(obj) or has_ended(obj):
        return
    paths = dict(override_paths(obj))
    try:
        # Read strictly it has the version whose schema it must fit.
        model = {"apiVersion": TRAIN_JOBS.api_version, "metadata": obj["metadata"], "spec": decoded(obj).get("spec")}
        train_job = TrainJob.from_object(model, strict=True)
        train_job = train_job.model_copy(update={"api_version": obj["apiVersion"]})
        review = pipeline.review(train_job, runtime, None)
        findings: Iterable[FieldError | AdmissionWarning] = (*review.errors, *review.warnings)
    except InvalidObjectError as error:
        findings = error.errors
    for finding in findings:
        yield _translated(finding, paths)


def with_times(obj: Object, old: Object | None, now: str) -> Object:
    """A TrainJob whose runtime patches say when they were last changed.

    A time that the author gives to a new patch is kept; an unchanged patch keeps its stored time.

    Args:
        obj: the TrainJob as it was sent; it may be invalid in any way.
        old: what it replaces.
        now: the present time.
    """
    spec = _mapping(obj, "spec")
    former = {str(patch.get("manager")): patch for patch in _objects(_mapping(old, "spec").get("runtimePatches"))}
    patches = spec.get("runtimePatches")
    if not isinstance(patches, list):
        return obj
    timed = [
        _timed(patch, former.get(str(patch.get("manager"))), now) if isinstance(patch, dict) else patch
        for patch in patches
    ]
    return obj | {"spec": spec | {"runtimePatches": timed}}


def _timed(patch: Object, former: Object | None, now: str) -> Object:
    if former is None:
        return patch if patch.get("time") else patch | {"time": now}
    is_same = _meaning(_without_time(patch)) == _meaning(_without_time(former))
    time = former.get("time") if is_same else now
    return patch | {"time": time} if time else patch


def _without_time(patch: Object) -> Object:
    return {name: value for name, value in patch.items() if name != "time"}


def _meaning(value: Any) -> Any:
    """A value without empty members, which clients in Go such as Kueue leave out when they send an object back."""
    if isinstance(value, dict):
        members = ((name, _meaning(member)) for name, member in value.items())
        return {name: member for name, member in members if not (member is False or member in _EMPTY)}
    return [_meaning(item) for item in value] if isinstance(value, list) else value


def _manager_errors(obj: Object) -> Iterator[FieldError]:
    for patch in _objects(_mapping(obj, "spec").get("runtimePatches")):
        manager = str(patch.get("manager", ""))
        host, _, path = manager.partition("/")
        field = f"{_PATCHES}.manager"
        if not host or not path:
            yield invalid(field, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        elif len(host) > _LONGEST_HOST or not _HOST.fullmatch(host):
            yield invalid(field, manager, "the part before / must be a DNS name in lower case, such as acme.io")
        elif not _PATH.fullmatch(path):
            yield invalid(field, manager, f"Invalid path (regex used for validation is '{_PATH.pattern}')")


def _change_errors(obj: Object, old: Object | None) -> Iterator[FieldError]:
    """Runtime patches change only before pods run, or after."""
    if old is None:
        return
    before, after = _mapping(old, "spec"), _mapping(obj, "spec")
    if _meaning(before.get("runtimePatches") or []) == _meaning(after.get("runtimePatches") or []):
        return
    if not (before.get("suspend") or after.get("suspend")):
        rule = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
        yield forbidden(_PATCHES, rule)
        return
    for job in _objects(_mapping(old, "status").get("jobsStatus")):
        if job.get("active"):
            rule = (
                f"RuntimePatches cannot be modified when the JobSet's ReplicatedJob {job.get('name')} is still active"
            )
            yield forbidden(_PATCHES, rule)


def _fit_errors(obj: Object, runtime: Runtime) -> Iterator[FieldError]:
    """What does not fit the runtime."""
    spec = _mapping(obj, "spec")
    jobs = {job.name: job for job in runtime.spec.template.spec.replicated_jobs or []}
    policy = runtime.spec.ml_policy
    source = policy.source if policy is not None else None
    yield from _reserved_errors(_mapping(spec, "trainer"), source)
    if policy is not None and policy.mpi is not None and policy.mpi.run_launcher_as_node:
        nodes = _mapping(spec, "trainer").get("numNodes") or 1
        if nodes > 1 and not {"launcher", _NODE} <= jobs.keys():
            rule = (
                "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher and "
                "node"
            )
            yield invalid("spec.trainer.numNodes", nodes, rule)
    if policy is not None and policy.flux is not None:
        yield from _flux_errors(_mapping(spec, "trainer"), jobs.get(_NODE))
    for member, step in _INITIALIZERS.items():
        if _mapping(spec, "initializer").get(member) is not None:
            yield from _initializer_errors(spec.get("runtimeRef"), step, f"{member}Config", jobs.get(step))
    yield from _patch_errors(spec, jobs)


def _reserved_errors(trainer: Object, source: str | None) -> Iterator[FieldError]:
    names = [str(each.get("name")) for each in _objects(trainer.get("env"))]
    reserved = _RESERVED.get(source or "", ())
    if source == "xgboost":
        for index, name in enumerate(names):
            if name in reserved:
                yield forbidden(f"spec.trainer.env[{index}]", f"{name} is reserved for the XGBoost runtime")
    elif found := sorted(set(names) & set(reserved)):
        rule = f"must not have reserved envs, invalid envs configured: [{' '.join(found)}]"
        yield invalid("spec.trainer.env", trainer.get("env"), rule)


def _flux_errors(trainer: Object, node: ReplicatedJob | None) -> Iterator[FieldError]:
    processes = trainer.get("numProcPerNode")
    if isinstance(processes, int) and processes < 1:
        rule = "must be greater than or equal to 1 for Flux TrainJob"
        yield invalid("spec.trainer.numProcPerNode", processes, rule)
    if node is not None and _FLUX_INSTALLER in _containers(node):
        rule = f"InitContainer '{_FLUX_INSTALLER}' is reserved"
        yield invalid("spec.trainer.initContainers", _FLUX_INSTALLER, rule)


def _initializer_errors(ref: Any, step: str, member: str, job: ReplicatedJob | None) -> Iterator[FieldError]:
    if job is None:
        rule = f"must have {step} job when trainJob is configured with input {member}"
        yield invalid("spec.runtimeRef", ref, rule)
        return
    container = _containers(job).get(step)
    if container is None:
        rule = f"must have container with name - {step} in the {step} job"
        yield invalid("spec.runtimeRef", ref, rule)


def _patch_errors(spec: Object, jobs: dict[str, ReplicatedJob]) -> Iterator[FieldError]:
    """The names that runtime patches use, which the released Trainer means to check."""
    for patch in _objects(spec.get("runtimePatches")):
        template = _mapping(_mapping(_mapping(patch, "trainingRuntimeSpec"), "template"), "spec")
        for patched in _objects(template.get("replicatedJobs")):
            name = str(patched.get("name"))
            job = jobs.get(name)
            if job is None:
                rule = "must not have replicated job that doesn't exist in the runtime job template"
                yield invalid(_PATCHES, name, rule)
                continue
            pod_spec = _mapping(_mapping(_mapping(_mapping(patched, "template"), "spec"), "template"), "spec")
            for kind, word in (("initContainers", "initContainer"), ("containers", "container")):
                for container in _objects(pod_spec.get(kind)):
                    if container.get("name") not in _containers(job):
                        rule = f"must not have {word} that doesn't exist in the runtime job {name}"
                        yield invalid(_PATCHES, container.get("name"), rule)
                    if kind == "containers" and container.get("env") and container.get("name") in _ENV_ELSEWHERE:
                        rule = "must not have envs for the dataset-initializer, model-initializer, node containers"
                        yield invalid(_PATCHES, container.get("name"), rule)


def _ancestor_errors(runtime: Object) -> Iterator[FieldError]:
    """What is wrong with the replicated Jobs of a runtime that a TrainJob changes."""
    template = _mapping(_mapping(_mapping(runtime, "spec"), "template"), "spec")
    for index, job in enumerate(_objects(template.get("replicatedJobs"))):
        job_template = _mapping(job, "template")
        ancestor = _mapping(_mapping(job_template, "metadata"), "labels").get(ANCESTOR_LABEL)
        required = _MAIN_CONTAINERS.get(ancestor) if isinstance(ancestor, str) else None
        if required is None:
            continue
        field = f"spec.template.spec.replicatedJobs[{index}]"
        if job.get("replicas", 1) != 1:
            yield invalid(f"{field}.replicas", job.get("replicas"), "always must be 1")
        pod_spec = _mapping(_mapping(_mapping(job_template, "spec"), "template"), "spec")
        names = [container.get("name") for container in _objects(pod_spec.get("containers"))]
        if required not in names:
            path = f"{field}.template.spec.template.spec.containers"
            yield invalid(path, names, f"must contain the required container for the ancestor: {ancestor}")


def _containers(job: ReplicatedJob) -> dict[str, Object]:
    """The containers and init containers of a Job by name."""
    pod_spec = _mapping(job.template.spec.template, "spec")
    found = [*_objects(pod_spec.get("initContainers")), *_objects(pod_spec.get("containers"))]
    return {str(container.get("name")): container for container in found}


def _deprecation(runtime: Runtime) -> Iterator[AdmissionWarning]:
    obj = {"metadata": runtime.metadata.to_object()}
    if runtime.kind == CLUSTER_TRAINING_RUNTIMES.kind and labels_of(obj).get(SUPPORT_LABEL) == DEPRECATED:
        yield AdmissionWarning(
            "",
            f'Referenced ClusterTrainingRuntime "{name_of(obj)}" is deprecated and will be removed in a future release '
            "of Kubeflow Trainer",
        )


def _reference(obj: Object) -> TrainJob:
    """A TrainJob that says no more than which runtime it builds on, and whether it was built."""
    ref = _mapping(_mapping(obj, "spec"), "runtimeRef")
    fields: Object = {
        "metadata": {
            name: obj["metadata"].get(name) for name in ("name", "namespace", "uid") if obj["metadata"].get(name)
        },
        "spec": {"runtimeRef": ref},
        "status": obj.get("status"),
    }
    try:
        return TrainJob.from_object(fields)
    except InvalidObjectError:
        kind = "TrainingRuntime" if ref.get("kind") == TRAINING_RUNTIMES.kind else "ClusterTrainingRuntime"
        return TrainJob(
            metadata=ObjectMetadata(namespace=str(obj["metadata"].get("namespace") or "")),
            spec=TrainJobSpec(runtime_ref=RuntimeRef.model_construct(name=str(ref.get("name")), kind=kind)),
        )


def _as_warning(finding: FieldError | AdmissionWarning) -> AdmissionWarning:
    return AdmissionWarning(finding.field, finding.message)


def _translated(finding: FieldError | AdmissionWarning, paths: dict[str, str]) -> AdmissionWarning:
    """A warning of a finding about the model, with the path of v1alpha1."""
    for ours, theirs in paths.items():
        if finding.field == ours or finding.field.startswith((f"{ours}.", f"{ours}[")):
            return AdmissionWarning(theirs + finding.field.removeprefix(ours), finding.message)
    return _as_warning(finding)


def _response(review: Review) -> AdmissionResponse:
    warnings = tuple(islice(dict.fromkeys(map(str, review.warnings)), _MOST_WARNINGS))
    if not review.errors:
        return AdmissionResponse.allow(warnings)
    texts = [str(error)[:_LONGEST_TEXT] for error in review.errors[:_MOST_ERRORS]]
    message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return AdmissionResponse.fail(403, "Forbidden", message, warnings=warnings)


def _placed(obj: Object, request: AdmissionRequest) -> Object:
    """The object with the kind and namespace of the request."""
    metadata = dict(obj.get("metadata") or {})
    if request.namespace:
        metadata["namespace"] = request.namespace
    types = {"apiVersion": request.resource.api_version, "kind": request.resource.kind}
    return obj | types | {"metadata": metadata}


def _objects(value: Any) -> list[Object]:
    """The objects in a list that is not validated yet."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _mapping(parent: Any, name: str) -> Object:
    value = parent.get(name) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}
