"""The HorizontalPodAutoscaler of an elastic training, which scales its nodes by the `metrics` of its policy.

It scales the TrainJob (`kubectl scale trainjob` does the same by hand), whose nodes follow. Metrics of a kind that
Kubernetes does not know are refused by its API server when the autoscaler is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework import Component, Watch
from trainer.kube.field_errors import FieldError, required
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo
    from trainer.kube.objects import Object

LABEL = "trainer.kubeflow.org/autoscaler-of"
"""Label of our autoscalers with the name of the TrainJob; only these are cached."""

WATCH = Watch(HORIZONTAL_POD_AUTOSCALERS, Selection(label_selector=LABEL))
"""Our autoscalers; a deleted one is created again."""


def validate(info: RuntimeInfo, train_job: TrainJob) -> Iterator[FieldError]:
    """Refuse metrics without a number of nodes, since an autoscaler ignores a target without replicas."""
    if _metrics(info) and not (train_job.spec.trainer and train_job.spec.trainer.num_nodes):
        rule = "set the number of nodes at the start; the metrics of the runtime's elasticPolicy change it later"
        yield required("spec.trainer.numNodes", rule)


def build(info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
    """The autoscaler if there are metrics; it is deleted while the TrainJob is suspended and after its end."""
    metrics = _metrics(info)
    bounds = info.trainer.elastic if metrics else None
    if bounds is None or train_job.spec.suspend:
        return
    yield Component(
        HORIZONTAL_POD_AUTOSCALERS,
        {
            "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
            "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
            "metadata": {
                "name": info.job_name,
                "namespace": train_job.metadata.namespace,
                "labels": {LABEL: info.job_name},
            },
            "spec": {
                "scaleTargetRef": {
                    "apiVersion": TRAIN_JOBS.api_version,
                    "kind": TRAIN_JOBS.kind,
                    "name": info.job_name,
                },
                "minReplicas": bounds.least,
                "maxReplicas": bounds.most,
                "metrics": metrics,
            },
        },
        lives_on=False,
    )


def _metrics(info: RuntimeInfo) -> list[Object]:
    policy = info.ml_policy.torch and info.ml_policy.torch.elastic_policy
    return (policy and policy.metrics) or []
