"""Jobs: what the API server does to them (batch/v1 defaulting and selector generation), and what of them may change."""

from __future__ import annotations

from copy import deepcopy

from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object, labels_of, name_of, uid_of
from trainer.kube.resource import JOBS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import IMMUTABLE, dicts, fill, section, take_over, unchanged
from trainer_devcluster.apiserver.kinds.jobs.validation import validate_job, validate_job_spec
from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec, drop_disabled
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

_IMMUTABLE = ("completionMode", "podFailurePolicy", "managedBy", "successPolicy")
_SCHEDULING_METADATA = ("annotations", "labels")
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


def validate_changes(job: Object, old: Object) -> list[FieldError]:
    """What is wrong with the difference between a changed Job and the stored one."""
    spec, before = job["spec"], old["spec"]
    causes = _validate_completions(spec, before)
    causes += unchanged("spec.selector", spec.get("selector"), before.get("selector"))
    if _fixed_template(job, old) != before["template"]:
        causes.append(invalid("spec.template", spec["template"], IMMUTABLE))
    for field in _IMMUTABLE:
        causes += unchanged(f"spec.{field}", spec.get(field), before.get(field))
    return causes


def _validate_completions(spec: Object, before: Object) -> list[FieldError]:
    """An Indexed Job may be resized if completions and parallelism stay equal (KEP-3715, elastic Indexed Jobs)."""
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return []
    if spec["completionMode"] != "Indexed":
        return [invalid("spec.completions", completions, IMMUTABLE)]
    if completions is None or completions == spec["parallelism"]:
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _fixed_template(job: Object, old: Object) -> Object:
    """The new template without those changes that a suspended Job that does not run allows (KEP-2926, KEP-5440)."""
    template: Object = deepcopy(job["spec"]["template"])
    if not old["spec"]["suspend"] or (old.get("status") or {}).get("startTime"):
        return template
    before = old["spec"]["template"]
    metadata = template.setdefault("metadata", {})
    take_over(metadata, before.get("metadata") or {}, _SCHEDULING_METADATA)
    if not metadata and "metadata" not in before:
        del template["metadata"]
    take_over(template["spec"], before["spec"], _SCHEDULING_DIRECTIVES)
    _fix_node_affinity(template["spec"], before["spec"])
    return template


def _fix_node_affinity(spec: Object, before: Object) -> None:
    """Take back changes of the node affinity, which say where pods may go; those to other pods may not change."""
    affinity, former = spec.get("affinity") or {}, before.get("affinity")
    take_over(affinity, former or {}, ("nodeAffinity",))
    if affinity or former is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)


_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_CONTROLLER_UID = "controller-uid"
_LEGACY_JOB_NAME = "job-name"
_NAME_WARNING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended"
)
_BACKOFF_LIMIT = 6


class JobStrategy(Strategy):
    """batch/v1 Job."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification and, from the template, the labels."""
        spec = section(obj, "spec")
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        fill(
            spec,
            parallelism=1,
            backoffLimit=_BACKOFF_LIMIT,
            completionMode="NonIndexed",
            suspend=False,
            manualSelector=False,
            podReplacementPolicy="TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed",
        )
        for rule in dicts((spec.get("podFailurePolicy") or {}).get("rules")):
            for pattern in dicts(rule.get("onPodConditions")):
                fill(pattern, status="True")
        default_pod_spec(section(section(spec, "template"), "spec"))
        _default_labels(obj)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Generate the selector and the labels that it selects by; what is there already is left to validation."""
        drop_disabled(obj["spec"]["template"]["spec"], context.gates)
        obj["status"] = {}
        fill(
            section(section(obj["spec"]["template"], "metadata"), "labels"),
            **{
                _CONTROLLER_UID: uid_of(obj),
                _LEGACY_CONTROLLER_UID: uid_of(obj),
                _JOB_NAME: name_of(obj),
                _LEGACY_JOB_NAME: name_of(obj),
            },
        )
        fill(section(section(obj["spec"], "selector"), "matchLabels"), **{_CONTROLLER_UID: uid_of(obj)})
        _default_labels(obj)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check the specification; a name that is not fit for the pods' is warned of."""
        causes, problems = validate_job(obj), name_problems(name_of(obj), NameRule.LABEL)
        if problems and not causes:
            context.warn(f"{_NAME_WARNING}: [{' '.join(problems)}]")
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the specification and what of it has changed."""
        if context.subresource == "status":
            return []
        # The specification twice, as the real server does it and tells it.
        return [*validate_job(obj), *validate_job_spec(obj["spec"]), *validate_changes(obj, old)]


def _default_labels(obj: Object) -> None:
    labels = labels_of(obj["spec"]["template"])
    if labels and not labels_of(obj):
        section(obj, "metadata")["labels"] = dict(labels)


JOB = ResourceDefinition(JOBS, JobStrategy(), singular="job", categories=("all",), status_subresource=True)
