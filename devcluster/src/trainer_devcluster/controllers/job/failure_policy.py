"""What a Job's podFailurePolicy says about a failed pod (Kubernetes documentation, "Pod failure policy")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from trainer.kube.objects import key_of
from trainer_devcluster.controllers.job.pods import failed_containers

if TYPE_CHECKING:
    from trainer.kube.objects import Object


class Action(StrEnum):
    """What a rule does with the pods that it matches."""

    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"
    IGNORE = "Ignore"
    COUNT = "Count"


@dataclass(frozen=True, slots=True)
class Match:
    """The first rule that matches a pod, and why."""

    action: Action
    message: str


COUNTED = Match(Action.COUNT, "")
"""What happens to a pod that no rule matches."""


def match_failure_policy(job: Object, pod: Object) -> Match:
    """The first rule of `spec.podFailurePolicy` that matches the failed pod, else `COUNTED`."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    for index, rule in enumerate(rules):
        because = _matches_exit_code(rule, pod) or _matches_condition(rule, pod)
        if because:
            action = Action(rule["action"])
            return Match(action, f"{because} matching {action} rule at index {index}")
    return COUNTED


def _matches_exit_code(rule: Object, pod: Object) -> str:
    requirement = rule.get("onExitCodes")
    if not requirement:
        return ""
    listed = set(requirement.get("values") or [])
    wanted_name = requirement.get("containerName")
    for name, code in failed_containers(pod):
        if wanted_name in (None, name) and (code in listed) == (requirement["operator"] == "In"):
            return f"Container {name} for pod {key_of(pod)} failed with exit code {code}"
    return ""


def _matches_condition(rule: Object, pod: Object) -> str:
    wanted = {(pattern["type"], pattern.get("status") or "True") for pattern in rule.get("onPodConditions") or []}
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if (condition["type"], condition.get("status")) in wanted:
            return f"Pod {key_of(pod)} has condition {condition['type']}"
    return ""
