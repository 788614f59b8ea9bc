"""Has the manager run OptimizationJobs."""

from __future__ import annotations

from trainer.components import ComponentContext, Webhooks
from trainer.kube.manager.manager import Manager
from trainer_sweeps.admission import SweepAdmission
from trainer_sweeps.controllers.serving import serve_sweeps


def register(manager: Manager, webhooks: Webhooks, context: ComponentContext) -> None:
    """Register the controller and the webhook of OptimizationJobs."""
    admission = SweepAdmission(context.pipeline, manager.api_reader, version=context.version, metrics=manager.metrics)
    webhooks.add(admission)
    serve_sweeps(manager, context.namespace, context.version)
