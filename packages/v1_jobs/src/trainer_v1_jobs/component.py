"""Has the manager serve PyTorchJobs and JAXJobs of kubeflow.org/v1."""

from __future__ import annotations

from typing import Final

from trainer.components import ComponentContext, Webhooks
from trainer.kube.manager.manager import Manager
from trainer_v1_jobs.admission import JobAdmission
from trainer_v1_jobs.controllers.serving import serve_jobs

WEBHOOKS: Final = "validator.kubeflow-v1.trainer.kubeflow.org"
"""Name of the ValidatingWebhookConfiguration of config/v1."""


def register(manager: Manager, webhooks: Webhooks, context: ComponentContext) -> None:
    """Register the controllers and the webhooks of the served kinds, if the configuration enables them."""
    if not context.configuration.controllers.v1.enabled:
        return
    serve_jobs(manager, context.namespace, context.version)
    admission = JobAdmission(context.pipeline, manager.api_reader, version=context.version, metrics=manager.metrics)
    webhooks.add(admission, validating=WEBHOOKS)
