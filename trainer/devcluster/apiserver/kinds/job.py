"""Jobs: what the API server does to them (batch/v1 defaulting, selector generation and validation)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.definitions import NameRule, ResourceDefinition
from trainer.devcluster.apiserver.kinds.causes import IMMUTABLE, not_negative, unchanged
from trainer.devcluster.apiserver.kinds.editing import fill, section, take_over
from trainer.devcluster.apiserver.kinds.job_status import validate_job_status
from trainer.devcluster.apiserver.kinds.job_success_policy import validate_success_policy
from trainer.devcluster.apiserver.kinds.pod_spec import default_pod_spec
from trainer.devcluster.apiserver.kinds.pod_spec_validation import validate_pod_spec
from trainer.devcluster.apiserver.names import name_problems
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer.kube.objects import labels_of, name_of, uid_of
from trainer.kube.resource import JOBS

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_CONTROLLER_UID = "controller-uid"
_LEGACY_JOB_NAME = "job-name"
_MAX_INDEXED_PARALLELISM = 100_000
_RESTART_POLICIES = ("Never", "OnFailure")
_COUNTS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_IMMUTABLE = ("selector", "completionMode", "podFailurePolicy", "managedBy", "successPolicy", "manualSelector")
_UNSUPPORTED = ("backoffLimitPerIndex", "maxFailedIndexes")
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


class JobStrategy(StoreOnlyStrategy):
    """batch/v1 Job."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification and, from the template, the labels."""
        spec = section(obj, "spec")
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        fill(
            spec,
            parallelism=1,
            backoffLimit=6,
            completionMode="NonIndexed",
            suspend=False,
            manualSelector=False,
            podReplacementPolicy="Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
        )
        default_pod_spec(section(section(spec, "template"), "spec"))
        _default_labels(obj)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Generate the selector and the labels that it selects by."""
        obj["status"] = {}
        if obj["spec"]["manualSelector"]:
            return
        labels = section(section(obj["spec"]["template"], "metadata"), "labels")
        labels |= {
            _CONTROLLER_UID: uid_of(obj),
            _LEGACY_CONTROLLER_UID: uid_of(obj),
            _JOB_NAME: name_of(obj),
            _LEGACY_JOB_NAME: name_of(obj),
        }
        obj["spec"]["selector"] = {"matchLabels": {_CONTROLLER_UID: uid_of(obj)}}
        _default_labels(obj)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the specification."""
        return _validate_spec(obj)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the specification and what of it has changed; on `/status` the status."""
        if context.subresource == "status":
            return validate_job_status(obj, old)
        return _validate_spec(obj) + _validate_changes(obj, old)


def _default_labels(obj: Object) -> None:
    labels = labels_of(obj["spec"]["template"])
    if labels and not labels_of(obj):
        section(obj, "metadata")["labels"] = dict(labels)


def _validate_spec(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    causes = [cause for field in _COUNTS for cause in not_negative(f"spec.{field}", spec.get(field))]
    causes += [
        forbidden(f"spec.{field}", "the dev cluster does not support it: leave it out, or use a real cluster")
        for field in _UNSUPPORTED
        if spec.get(field) is not None
    ]
    if spec["completionMode"] == "Indexed":
        causes += _validate_indexed(obj)
    elif spec["completionMode"] != "NonIndexed":
        causes.append(not_supported("spec.completionMode", spec["completionMode"], ("Indexed", "NonIndexed")))
    elif spec.get("successPolicy"):
        causes.append(invalid("spec.successPolicy", spec["successPolicy"], "requires indexed completion mode"))
    if spec["manualSelector"] and not spec.get("selector"):
        causes.append(required("spec.selector"))
    causes += validate_pod_spec(
        spec["template"]["spec"], "spec.template.spec", restart_policies=_RESTART_POLICIES
    ) or _validate_failure_policy(spec)
    return causes


def _validate_indexed(obj: Object) -> list[FieldError]:
    spec, completions = obj["spec"], obj["spec"].get("completions")
    if completions is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    causes: list[FieldError] = []
    if isinstance(spec["parallelism"], int) and spec["parallelism"] > _MAX_INDEXED_PARALLELISM:
        detail = f"must be less than or equal to {_MAX_INDEXED_PARALLELISM} when completion mode is Indexed"
        causes.append(invalid("spec.parallelism", spec["parallelism"], detail))
    if isinstance(completions, int):
        causes += validate_success_policy(spec.get("successPolicy"), completions)
    hostname = f"{name_of(obj)}-{max(int(completions) - 1, 0)}" if isinstance(completions, int) else name_of(obj)
    causes += [
        invalid(
            "metadata.name", name_of(obj), f"will not able to create pod with invalid DNS name {hostname!r}: {problem}"
        )
        for problem in name_problems(hostname, NameRule.LABEL)
    ]
    return causes


def _validate_failure_policy(spec: Object) -> list[FieldError]:
    policy = spec.get("podFailurePolicy")
    if not policy:
        return []
    causes: list[FieldError] = []
    if spec["template"]["spec"]["restartPolicy"] != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        causes.append(invalid("spec.template.spec.restartPolicy", spec["template"]["spec"]["restartPolicy"], detail))
    for index, rule in enumerate(policy.get("rules") or []):
        path = f"spec.podFailurePolicy.rules[{index}]"
        if rule.get("action") not in ("FailJob", "Ignore", "Count"):
            causes.append(not_supported(f"{path}.action", rule.get("action"), ("Count", "FailJob", "Ignore")))
        if bool(rule.get("onExitCodes")) == bool(rule.get("onPodConditions")):
            causes.append(invalid(path, rule, "specifying one of OnExitCodes and OnPodConditions is required"))
        elif rule.get("onExitCodes") and rule["onExitCodes"].get("operator") not in ("In", "NotIn"):
            causes.append(
                not_supported(f"{path}.onExitCodes.operator", rule["onExitCodes"].get("operator"), ("In", "NotIn"))
            )
    return causes


def _validate_changes(obj: Object, old: Object) -> list[FieldError]:
    spec, before = obj["spec"], old["spec"]
    causes = [cause for field in _IMMUTABLE for cause in unchanged(f"spec.{field}", spec.get(field), before.get(field))]
    if spec.get("completions") != before.get("completions"):
        causes += _validate_resizing(spec)
    if _fixed_template(obj, old) != before["template"]:
        causes.append(invalid("spec.template", spec["template"], IMMUTABLE))
    return causes


def _validate_resizing(spec: Object) -> list[FieldError]:
    """An Indexed Job may be resized if completions and parallelism stay equal (KEP-3715, elastic Indexed Jobs)."""
    completions = spec.get("completions")
    if spec["completionMode"] != "Indexed":
        return [invalid("spec.completions", completions, IMMUTABLE)]
    if completions is None or completions == spec["parallelism"]:
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _fixed_template(obj: Object, old: Object) -> Object:
    """The new template without those changes that a suspended Job that does not run allows (KEP-2926, KEP-5440)."""
    template: Object = deepcopy(obj["spec"]["template"])
    if not old["spec"]["suspend"] or (old.get("status") or {}).get("startTime"):
        return template
    before = old["spec"]["template"]
    take_over(template, before, ("metadata",))
    take_over(template["spec"], before["spec"], _SCHEDULING_DIRECTIVES)
    return template


JOB = ResourceDefinition(JOBS, JobStrategy(), singular="job", categories=("all",), status_subresource=True)
