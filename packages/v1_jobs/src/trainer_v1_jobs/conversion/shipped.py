"""Runtimes that exist already: whether one of them says what was written for a job."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final

from trainer.api.progress import REPORTER
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.workloads.container_end import SIGTERM
from trainer.workloads.pod_life import SAVED_AND_ENDED
from trainer_v1_jobs.conversion.places import NODE
from trainer_v1_jobs.conversion.pods import TRAINER, UNBUFFERED
from trainer_v1_jobs.conversion.restarts import DISRUPTIONS_IGNORED

_POD_FIELDS: Final = (
    "volumes", "serviceAccountName", "imagePullSecrets", "securityContext", "terminationGracePeriodSeconds",
    "nodeSelector", "affinity", "tolerations", "schedulingGates",
)  # fmt: skip
"""What a TrainJob may say of pods in an override."""
_CONTAINER_FIELDS: Final = ("envFrom", "volumeMounts", "securityContext")
"""What it may say of a container there."""
_TRAINER_FIELDS: Final = ("name", "image", "command", "args", "resources", "env")
"""What it says of the container that trains in `spec.trainer`."""
_RESTART: Final = "RestartJobSetAndIgnoreMaxRestarts"
_STOPPED: Final = {SAVED_AND_ENDED, SIGTERM}
"""Exit codes of programs that were asked to end: after they have saved their state, and at once."""


def matching_runtime(spec: Object, runtimes: Iterable[Object]) -> tuple[Object, list[Object]] | None:
    """The first runtime that is equal to one with this spec, but for what a TrainJob can say, and its overrides.

    None if there is none. How it makes drained pods again does not count, see `survives_disruptions`.
    """
    rest, override = _split(spec)
    if rest is None:
        return None
    for runtime in runtimes:
        shipped, own = _split(mapping_at(runtime, "spec"))
        if shipped == rest and not own:
            return runtime, [override] if override else []
    return None


def survives_disruptions(runtime: Object) -> bool:
    """Whether a runtime that matches makes drained pods again, alone or with all others, without counting it."""
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return bool(mapping_at(job, "template", "spec").get("podFailurePolicy"))


def _answers_disruptions(template: Object) -> bool:
    """Whether the policies of a JobSet of one Job only say that disrupted pods, or all, start again uncounted."""
    (job,) = objects_in(template.get("replicatedJobs"))
    rules = objects_in(mapping_at(job, "template", "spec", "podFailurePolicy").get("rules"))
    restarts = mapping_at(template, "failurePolicy")
    is_restarted = [rule.get("action") for rule in objects_in(restarts.get("rules"))] == [_RESTART]
    action = "FailJob" if is_restarted else "Ignore"
    return (
        (not restarts or (is_restarted and not restarts.get("maxRestarts")))
        and DISRUPTIONS_IGNORED["rules"][0]["onPodConditions"] in [rule.get("onPodConditions") for rule in rules]
        and all(rule.get("action") == action and _is_of_disruption(rule) for rule in rules)
    )


def _is_of_disruption(rule: Object) -> bool:
    codes = mapping_at(rule, "onExitCodes")
    return not codes or (codes.get("operator") == "In" and set(codes.get("values") or ()) <= _STOPPED)


def without_shipped_variables(variables: list[Object], runtime: Object) -> list[Object]:
    """The variables that a runtime does not set in the same way."""
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = _pod_spec(job)["containers"]
    return [variable for variable in variables if variable not in objects_in(container.get("env"))]


def _split(spec: Object) -> tuple[Object | None, Object]:
    """What only a runtime can say, and the override that says the rest; None where a TrainJob cannot say the rest."""
    rest = copy.deepcopy(spec)
    _drop_defaults(rest)
    jobs = objects_in(mapping_at(rest, "template", "spec").get("replicatedJobs"))
    containers = [each for job in jobs for each in objects_in(_pod_spec(job).get("containers"))]
    if len(jobs) != 1 or jobs[0].get("name") != NODE or len(containers) != 1:
        return None, {}
    (container,) = containers
    if any(variable != UNBUFFERED for variable in container.get("env") or []):
        return None, {}
    job = jobs[0]["template"]["spec"]
    if _answers_disruptions(mapping_at(rest, "template", "spec")):
        job.pop("podFailurePolicy", None)
        mapping_at(rest, "template", "spec").pop("failurePolicy", None)
    template = job["template"]
    override = {name: template["spec"].pop(name) for name in _POD_FIELDS if name in template["spec"]}
    change = {name: container.pop(name) for name in _CONTAINER_FIELDS if name in container}
    for name in _TRAINER_FIELDS:
        container.pop(name, None)
    if change:
        override["containers"] = [{"name": TRAINER} | change]
    if "metadata" in template:
        override["metadata"] = template.pop("metadata")
    return rest, ({"targetJobs": [{"name": NODE}]} | override) if override else {}


def _drop_defaults(spec: Object) -> None:
    """Leave out what a TrainJob says in any case, what is the default, and what only shows progress."""
    mapping_at(spec, "mlPolicy").pop("numNodes", None)
    torch = mapping_at(spec, "mlPolicy", "torch")
    if torch.get("numProcPerNode") == "auto":
        del torch["numProcPerNode"]
    annotations = mapping_at(spec, "template", "metadata", "annotations")
    annotations.pop(REPORTER, None)
    if mapping_at(spec, "template").get("metadata") == {"annotations": {}}:
        del spec["template"]["metadata"]


def _pod_spec(job: Object) -> Object:
    return mapping_at(job, "template", "spec", "template", "spec")
