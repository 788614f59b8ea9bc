"""Workloads: what the kinds of apps/v1 have in common, a selector and a template of pods that run forever.

The dev cluster stores them and makes no pods for them: it has no controllers for apps/v1, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import forbidden, invalid, required
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.editing import section
from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec
from trainer_devcluster.apiserver.kinds.selector_validation import validate_label_selector
from trainer_devcluster.apiserver.objects.names import label_value_problems, qualified_name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_MISMATCH = "`selector` does not match template `labels`"


class WorkloadStrategy(StoreOnlyStrategy):
    """A kind of apps/v1; derived classes say what is particular about it."""

    kind: str
    """Such as `Deployment`."""
    no_pods = "the dev cluster runs no controller for it, so that no pods are made"

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the template; derived classes do the rest."""
        template = section(section(obj, "spec"), "template")
        section(template, "metadata")
        default_pod_spec(section(template, "spec"))

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Tell the client what will not happen."""
        context.warn(f"apps/v1 {self.kind} is only stored: {self.no_pods}")


def validate_selected_template(
    spec: Object, kind: str, *, empty_selector: str = "", selector_detail: str = ""
) -> list[FieldError]:
    """What is wrong with `spec.selector` and `spec.template`.

    Args:
        spec: the specification of the workload.
        kind: how messages call it, such as `ReplicaSet`.
        empty_selector: how the message about an empty selector calls it; the default is the kind in lower case.
        selector_detail: what is said about a selector that cannot be evaluated, beside what is wrong in it.
    """
    selector, template = spec.get("selector"), spec["template"]
    causes: list[FieldError] = []
    if selector is None:
        causes.append(required("spec.selector"))
    else:
        causes += validate_label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            detail = f"empty selector is invalid for {empty_selector or kind.lower()}"
            causes.append(invalid("spec.selector", selector, detail))
    if causes and selector is not None and selector_detail:
        return [*causes, invalid("spec.selector", selector, selector_detail)]
    if not causes:
        causes += _validate_match(selector or {}, template)
    causes += validate_template_metadata(template, "spec.template.metadata")
    causes += validate_pod_spec(template["spec"], "spec.template.spec", restart_policies=("Always",))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        causes.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return causes


def validate_template_metadata(template: Object, path: str) -> list[FieldError]:
    """What is wrong with the labels and annotations of the template of an object."""
    metadata = template.get("metadata") or {}
    causes: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        causes += [invalid(f"{path}.labels", key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid(f"{path}.labels", value, problem) for problem in label_value_problems(value)]
    for key in metadata.get("annotations") or {}:
        causes += [invalid(f"{path}.annotations", key, problem) for problem in qualified_name_problems(key.lower())]
    return causes


def _validate_match(selector: Object, template: Object) -> list[FieldError]:
    labels = template["metadata"].get("labels") or {}
    if LabelSelector.from_object(selector).matches(labels):
        return []
    return [invalid("spec.template.metadata.labels", labels or None, _MISMATCH)]
