"""Jobs: what the API server does to them (batch/v1 defaulting and selector generation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.objects import labels_of, name_of, uid_of
from trainer.kube.resource import JOBS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.jobs.changes import validate_changes
from trainer_devcluster.apiserver.kinds.jobs.validation import validate_job, validate_job_spec
from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec, dicts
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
_JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_CONTROLLER_UID = "controller-uid"
_LEGACY_JOB_NAME = "job-name"
_NAME_WARNING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended"
)
_BACKOFF_LIMIT = 6


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

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Generate the selector and the labels that it selects by; what is there already is left to validation."""
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
