"""Validation of new Jobs, in the order and the words of the real server (batch/v1, KEP-3329 and KEP-3998)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from trainer.kube.field_errors import OMITTED, FieldError, forbidden, invalid, not_supported, required, too_long
from trainer.kube.names import subdomain_problems
from trainer.kube.objects import Object, labels_of, name_of, uid_of
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.kinds.fields import all_containers, not_negative, validate_label_selector
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_RULES: Final = "spec.successPolicy.rules"
_INDEXES: Final = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")


def validate_failure_policy(spec: Object) -> Iterator[FieldError]:
    """What is wrong with the pod failure policy of a Job's specification."""
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or []):
        yield from _validate_rule(spec, rule, f"spec.podFailurePolicy.rules[{index}]")


def _validate_rule(spec: Object, rule: Object, path: str) -> Iterator[FieldError]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    yield from _one_of(f"{path}.action", rule.get("action"), _ACTIONS)
    if rule.get("action") == "FailIndex":
        yield forbidden(f"{path}.action", "the dev cluster counts failures for the Job as a whole: use FailJob")
    if codes is not None:
        yield from _validate_exit_codes(spec, codes, f"{path}.onExitCodes")
    for index, pattern in enumerate(conditions):
        if not pattern.get("type"):
            yield required(f"{path}.onPodConditions[{index}].type")
    if codes is not None and conditions:
        yield invalid(path, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes is None and not conditions:
        yield invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _validate_exit_codes(spec: Object, requirement: Object, path: str) -> Iterator[FieldError]:
    operator, name, values = requirement.get("operator"), requirement.get("containerName"), requirement.get("values")
    yield from _one_of(f"{path}.operator", operator, _OPERATORS)
    if name is not None and all(
        container.get("name") != name for container in all_containers(spec["template"]["spec"])
    ):
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, detail)
    if not values:
        yield invalid(f"{path}.values", [], "at least one value is required")
    elif operator == "In" and 0 in values:
        yield invalid(f"{path}.values[{values.index(0)}]", 0, "must not be 0 for the In operator")


def _one_of(path: str, value: str | None, options: Sequence[str]) -> Iterator[FieldError]:
    """A complaint when a field is absent or none of its options."""
    if not value:
        shown = " ".join(f'"{option}"' for option in options)
        yield required(path, f"valid values: [{shown}]")
    elif value not in options:
        yield not_supported(path, value, options)


def validate_success_policy(policy: Object, completions: int) -> Iterator[FieldError]:
    """What is wrong with the success policy of an Indexed Job that has so many completions, which may change."""
    rules: list[Object] = policy.get("rules") or []
    if not rules:
        yield required(_RULES, "at least one rules must be specified when the successPolicy is specified")
    for index, rule in enumerate(rules):
        path, indexes, count = f"{_RULES}[{index}]", rule.get("succeededIndexes"), rule.get("succeededCount")
        if indexes is None and count is None:
            yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
        if indexes is not None and not _INDEXES.fullmatch(indexes):
            yield invalid(f"{path}.succeededIndexes", indexes, "must be indexes and intervals such as 0,2-5")
        yield from not_negative(f"{path}.succeededCount", count)
        if count is not None and count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            yield invalid(f"{path}.succeededCount", count, detail)


_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)
_PER_INDEX = ("backoffLimitPerIndex", "maxFailedIndexes")
_AS_A_WHOLE = "the dev cluster counts failures for the Job as a whole: leave it out, or use a real cluster"
_NO_ADOPTION = "Jobs of the dev cluster adopt no pods: leave it out, and the selector is generated"
_COMPLETION_MODES = ("NonIndexed", "Indexed")
_RESTART_POLICIES = ("OnFailure", "Never")
_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
_PATH = "spec.managedBy"
_LIMIT = 63
_SEGMENT = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_SEGMENT_TEXT = f"Invalid path (regex used for validation is '{_SEGMENT.pattern}')"


def validate_job(job: Object) -> list[FieldError]:
    """What is wrong with a defaulted Job, but for its metadata."""
    return [*_validate_generated_selector(job), *validate_job_spec(job["spec"]), *_validate_hostname(job)]


def validate_job_spec(spec: Object) -> list[FieldError]:
    """What is wrong with the specification of a Job."""
    causes = [cause for field in _COUNTS for cause in not_negative(f"spec.{field}", spec.get(field))]
    causes += [forbidden(f"spec.{field}", _AS_A_WHOLE) for field in _PER_INDEX if spec.get(field) is not None]
    if spec["manualSelector"]:
        causes.append(forbidden("spec.manualSelector", _NO_ADOPTION))
    causes += validate_manager(spec.get("managedBy"))
    causes += _validate_completion_mode(spec)
    causes += validate_failure_policy(spec)
    causes += _validate_success(spec)
    causes += _validate_replacement_policy(spec)
    causes += validate_pod_spec(spec["template"]["spec"], "spec.template.spec")
    causes += _validate_restart_policy(spec)
    return causes + _validate_selector(spec)


def _validate_generated_selector(job: Object) -> list[FieldError]:
    """The Job's own labels must be on its pods, whatever else the template says."""
    spec = job["spec"]
    if spec.get("selector") is None:
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
    if spec["completionMode"] not in _COMPLETION_MODES:
        return [not_supported("spec.completionMode", spec["completionMode"], _COMPLETION_MODES)]
    if spec["completionMode"] == "Indexed" and spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    return []


def _validate_success(spec: Object) -> list[FieldError]:
    policy, completions = spec.get("successPolicy"), spec.get("completions")
    if policy is None:
        return []
    if spec["completionMode"] != "Indexed":
        return [invalid("spec.successPolicy", policy, "requires indexed completion mode")]
    return [] if completions is None else list(validate_success_policy(policy, completions))


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


def validate_manager(manager: str | None) -> list[FieldError]:
    """What keeps a text from being a domain-prefixed path such as `example.com/controller`."""
    if manager is None:
        return []
    too_big = [too_long(_PATH, _LIMIT)] if len(manager) > _LIMIT else []
    return [*_validate_path(manager), *too_big]


def _validate_path(manager: str) -> list[FieldError]:
    if not manager:
        return [required(_PATH)]
    host, _, segment = manager.partition("/")
    if not host or not segment:
        return [invalid(_PATH, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    causes = [invalid(_PATH, host, problem) for problem in subdomain_problems(host)]
    if not _SEGMENT.fullmatch(segment):
        causes.append(invalid(_PATH, segment, _SEGMENT_TEXT))
    return causes
