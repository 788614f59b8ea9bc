"""What may change of a Job's specification once it is stored (batch/v1)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.kube.field_errors import invalid
from trainer_devcluster.apiserver.kinds.editing import take_over
from trainer_devcluster.apiserver.kinds.field_checks import IMMUTABLE, unchanged

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

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
