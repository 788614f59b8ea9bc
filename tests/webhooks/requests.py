"""Requests as the API server sends them: the mutating webhook first, then the validating one."""

from __future__ import annotations

from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes
from tests.webhooks.nets import pipeline, resource_of
from trainer.framework.pipeline import Pipeline
from trainer.framework.runtimes.runtimes import RuntimeSource
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.webhooks.handlers import AdmissionHandlers


def request_of(obj: Object, old: Object | None = None, *, subresource: str = "") -> AdmissionRequest:
    """The question about creating an object, or about changing it from `old`."""
    return AdmissionRequest(
        uid="review-1",
        operation=Operation.CREATE if old is None else Operation.UPDATE,
        resource=resource_of(obj),
        subresource=subresource,
        name=name_of(obj),
        namespace=namespace_of(obj),
        object=obj,
        old_object=old,
        dry_run=False,
        username="ann",
        groups=(),
    )


async def admit(
    obj: Object,
    old: Object | None = None,
    *,
    runtimes: RuntimeSource | None = None,
    plugins: Pipeline | None = None,
    subresource: str = "",
) -> AdmissionResponse:
    """What the validating webhook says about the object that the mutating one makes."""
    admission = AdmissionHandlers(plugins or pipeline(), runtimes or StaticRuntimes(RUNTIMES.values()))
    is_train_job = obj["kind"] == "TrainJob"
    default = admission.default_train_job if is_train_job else admission.default_runtime
    validate = admission.validate_train_job if is_train_job else admission.validate_runtime
    defaulted = await default(request_of(obj, old, subresource=subresource))
    return await validate(request_of(defaulted.object or obj, old, subresource=subresource))
