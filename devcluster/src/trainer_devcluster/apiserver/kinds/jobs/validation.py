"""Validation of new Jobs, in the order and the words of the real server (batch/v1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import invalid, not_supported, required
from trainer.kube.objects import labels_of, name_of, uid_of
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.kinds.causes import not_negative
from trainer_devcluster.apiserver.kinds.jobs.failure_policy import validate_failure_policy
from trainer_devcluster.apiserver.kinds.jobs.manager import validate_manager
from trainer_devcluster.apiserver.kinds.jobs.success_policy import validate_success_policy
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec
from trainer_devcluster.apiserver.kinds.selector_validation import validate_label_selector
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_COMPLETION_MODES = ("NonIndexed", "Indexed")
_RESTART_POLICIES = ("OnFailure", "Never")
_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
_LARGEST = 100_000
"""Most pods at once, and most failed indexes, of an Indexed Job; also when completions are many."""
_LARGEST_OF_MANY = 10_000
"""Most pods at once and most failed indexes when completions are many and each index has its own back-off limit."""


def validate_job(job: Object) -> list[FieldError]:
    """What is wrong with a defaulted Job, but for its metadata."""
    return [*_validate_generated_selector(job), *validate_job_spec(job["spec"]), *_validate_hostname(job)]


def validate_job_spec(spec: Object) -> list[FieldError]:
    """What is wrong with the specification of a Job."""
    causes = [cause for field in _COUNTS for cause in not_negative(f"spec.{field}", spec.get(field))]
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        causes.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    causes += validate_manager(spec.get("managedBy"))
    causes += _validate_completion_mode(spec)
    causes += validate_failure_policy(spec)
    causes += _validate_success(spec)
    causes += _validate_replacement_policy(spec)
    causes += validate_pod_spec(spec["template"]["spec"], "spec.template.spec")
    causes += _validate_restart_policy(spec)
    return causes + _validate_selector(spec)


def _validate_generated_selector(job: Object) -> list[FieldError]:
    """Without a manual selector the Job's own labels must be on its pods, whatever else the template says."""
    spec = job["spec"]
    if spec["manualSelector"] or spec.get("selector") is None:
        return []
    labels = labels_of(spec["template"])
    expected = {label: uid_of(job) for label in _UID_LABELS} | {label: name_of(job) for label in _NAME_LABELS}
    causes: list[FieldError] = []
    for label in (_UID_LABELS[0], _NAME_LABELS[0], _UID_LABELS[1], _NAME_LABELS[1]):
        path, detail = f"spec.template.metadata.labels[{label}]", f"must be '{expected[label]}'"
        if label not in labels:
            causes.append(required(path, detail))
        if labels.get(label, "") != expected[label]:
            causes.append(invalid(path, labels, detail))
    selector = _read_selector(spec["selector"])
    if selector is not None and not selector.matches(expected):
        causes.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return causes


def _validate_selector(spec: Object) -> list[FieldError]:
    given, labels = spec.get("selector"), labels_of(spec["template"])
    causes = [required("spec.selector")] if given is None else validate_label_selector(given, "spec.selector")
    selector = _read_selector(given)
    if given is None or (selector is not None and not selector.matches(labels)):
        detail = "`selector` does not match template `labels`"
        causes.append(invalid("spec.template.metadata.labels", labels, detail))
    return causes


def _read_selector(selector: Object | None) -> LabelSelector | None:
    try:
        return LabelSelector.from_object(selector or {})
    except ValueError:
        return None


def _validate_completion_mode(spec: Object) -> list[FieldError]:
    mode = spec["completionMode"]
    if mode == "Indexed":
        return _validate_indexed(spec)
    if mode not in _COMPLETION_MODES:
        return [not_supported("spec.completionMode", mode, _COMPLETION_MODES)]
    return [
        invalid(f"spec.{field}", spec[field], "requires indexed completion mode")
        for field in ("backoffLimitPerIndex", "maxFailedIndexes")
        if spec.get(field) is not None
    ]


def _validate_indexed(spec: Object) -> list[FieldError]:
    completions, parallelism, failures = (
        spec.get("completions"),
        spec["parallelism"],
        spec.get("maxFailedIndexes"),
    )
    causes: list[FieldError] = []
    if completions is None:
        causes.append(required("spec.completions", "when completion mode is Indexed"))
    if parallelism > _LARGEST:
        detail = f"must be less than or equal to {_LARGEST} when completion mode is Indexed"
        causes.append(invalid("spec.parallelism", parallelism, detail))
    if completions is not None and failures is not None and failures > completions:
        causes.append(invalid("spec.maxFailedIndexes", failures, "must be less than or equal to completions"))
    if failures is not None and failures > _LARGEST:
        causes.append(invalid("spec.maxFailedIndexes", failures, f"must be less than or equal to {_LARGEST}"))
    if completions is not None and completions > _LARGEST and spec.get("backoffLimitPerIndex") is not None:
        causes += _validate_many_completions(parallelism, failures)
    return causes


def _validate_many_completions(parallelism: int, failures: int | None) -> list[FieldError]:
    why = f"when completions are above {_LARGEST} and used with backoff limit per index"
    detail = f"must be less than or equal to {_LARGEST_OF_MANY} {why}"
    causes: list[FieldError] = []
    if failures is None:
        text = f"must be specified when completions is above {_LARGEST}"
        causes.append(required("spec.maxFailedIndexes", text))
    if parallelism > _LARGEST_OF_MANY:
        causes.append(invalid("spec.parallelism", parallelism, detail))
    if failures is not None and failures > _LARGEST_OF_MANY:
        causes.append(invalid("spec.maxFailedIndexes", failures, detail))
    return causes


def _validate_success(spec: Object) -> list[FieldError]:
    policy, completions = spec.get("successPolicy"), spec.get("completions")
    if policy is None:
        return []
    if spec["completionMode"] != "Indexed":
        return [invalid("spec.successPolicy", policy, "requires indexed completion mode")]
    return [] if completions is None else validate_success_policy(policy, completions)


def _validate_replacement_policy(spec: Object) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    allowed = _REPLACEMENT_POLICIES if spec.get("podFailurePolicy") is None else ("Failed",)
    return [] if policy in allowed else [not_supported("spec.podReplacementPolicy", policy, allowed)]


def _validate_restart_policy(spec: Object) -> list[FieldError]:
    path, policy = "spec.template.spec.restartPolicy", spec["template"]["spec"].get("restartPolicy")
    if policy in ("Always", "", None):
        # What nobody has said is Always by default, and a Job's pods have to come to an end.
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in _RESTART_POLICIES:
        return [not_supported(path, policy, _RESTART_POLICIES)]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _validate_hostname(job: Object) -> list[FieldError]:
    """Pods of an Indexed Job are called after it and their index."""
    completions = job["spec"].get("completions") or 0
    if job["spec"]["completionMode"] != "Indexed" or completions <= 0:
        return []
    hostname = f"{name_of(job)}-{completions - 1}"
    if not name_problems(hostname, NameRule.LABEL):
        return []
    detail = f"will not able to create pod with invalid DNS label: {hostname}"
    return [invalid("metadata.name", name_of(job), detail)]
