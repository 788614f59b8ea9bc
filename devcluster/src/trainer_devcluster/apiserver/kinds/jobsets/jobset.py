"""JobSets: what the webhooks of JobSet do; the schema and its rules are in `data/jobset_crd.yaml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics.statuses import invalid
from trainer.kube.objects import name_of
from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.admission.review import denial
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.jobsets.changes import validate_changes
from trainer_devcluster.apiserver.kinds.jobsets.claims import default_claims
from trainer_devcluster.apiserver.kinds.jobsets.validation import validate_jobset
from trainer_devcluster.apiserver.kinds.pods.pod_spec import all_containers, dicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext
    from trainer_devcluster.feature_gates import FeatureGates

_VALIDATING_WEBHOOK = "vjobset.kb.io"


class JobSetStrategy(StoreOnlyStrategy):
    """The mutating and the validating webhook of jobset.x-k8s.io/v1alpha2 (pkg/webhooks of JobSet)."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in policies, network and Job templates; called for new JobSets."""
        spec = section(obj, "spec")
        fill(spec, successPolicy={"operator": "All"}, startupPolicy={"startupPolicyOrder": "AnyOrder"})
        fill(section(spec, "network"), enableDNSHostnames=True, publishNotReadyAddresses=True)
        for replicated_job in dicts(spec.get("replicatedJobs")):
            _default_template(section(replicated_job, "template"))
        for index, rule in enumerate(dicts((spec.get("failurePolicy") or {}).get("rules"))):
            if not rule.get("name"):
                rule["name"] = f"failurePolicyRule{index}"
        default_claims(spec)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check what goes beyond the schema: names that are to be made, references, features behind gates.

        Raises:
            ApiError: 422, something is wrong, in the words of a webhook that denies a request.
        """
        return _denied(obj, validate_jobset(obj, context.stored))

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check that the replicated jobs are the same, but for scheduling directives while suspended, and sizes.

        Raises:
            ApiError: 422, as `validate`.
        """
        if context.subresource is not None:
            return []
        return _denied(obj, validate_changes(obj, old, elastic=self._gates.elastic_job_set))


def _denied(obj: Object, causes: Sequence[FieldError]) -> list[FieldError]:
    if causes:
        raise denial(_VALIDATING_WEBHOOK, invalid(JOBSETS.kind, JOBSETS.group, name_of(obj), causes).status)
    return []


def _default_template(template: Object) -> None:
    job_spec = section(template, "spec")
    pod_template = section(job_spec, "template")
    fill(job_spec, completionMode="Indexed")
    fill(section(pod_template, "spec"), restartPolicy="OnFailure")
    # The webhook answers with Go's serialisation of the object, in which these structs are never absent.
    fill(template, metadata={})
    fill(pod_template, metadata={})
    for container in all_containers(pod_template["spec"]):
        fill(container, resources={})
