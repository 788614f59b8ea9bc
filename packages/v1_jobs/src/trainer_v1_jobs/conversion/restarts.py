"""Restart policies of roles as policies of Jobs."""

from __future__ import annotations

from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.conversion.pods import Pods
from trainer_v1_jobs.conversion.source import Role, Source

UNLIMITED: Final = 2**31 - 1
"""A backoffLimit that is never reached: without one the operator starts pods again however often they fail."""

_PERMANENT: Final = list(range(1, 128))
"""The exit codes that fail a job with the restart policy ExitCode."""
DISRUPTIONS_IGNORED: Final[Object] = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
"""A pod that is drained or preempted is made again and does not count as failed: the operator did not see it fail."""
_BACKOFF_LIMIT: Final = "spec.runPolicy.backoffLimit"


def restart_fields(source: Source, role: Role, pods: Pods, losses: Losses) -> Object:
    """Members of a Job's spec with which its pods are started again as the operator did; sets that of the template.

    An unlimited number of restarts stays unlimited.
    """
    spec, limit = pods.template["spec"], source.run_policy.backoff_limit if source.run_policy else None
    match role.restart_policy:
        case "Never":
            spec["restartPolicy"] = "Never"
            return {"backoffLimit": 0, "podFailurePolicy": DISRUPTIONS_IGNORED}
        case "ExitCode":
            spec["restartPolicy"] = "Never"
            codes = {"containerName": pods.main["name"], "operator": "In", "values": _PERMANENT}
            policy = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
            return {"backoffLimit": UNLIMITED if limit is None else limit, "podFailurePolicy": policy}
        case "Always":
            rule = "becomes OnFailure, as Jobs demand: a container that ends with exit code 0 is not started again"
            losses.add(f"{role.path}.restartPolicy", rule)
    spec["restartPolicy"] = "OnFailure"
    return {"backoffLimit": UNLIMITED if limit is None else limit}


def check_backoff_limit(source: Source, jobs: int, losses: Losses) -> None:
    """Name a backoffLimit that counts for nothing, or for each of several Jobs by itself."""
    if source.run_policy is None or source.run_policy.backoff_limit is None:
        return
    if all(role.restart_policy == "Never" for role in source.roles):
        losses.add(_BACKOFF_LIMIT, "has no effect, as before: with restartPolicy Never the first failure is the last")
    elif jobs > 1:
        losses.add(_BACKOFF_LIMIT, "counts the restarts of each role or pod by itself, and not of all together")
