"""Elastic PyTorch: nodes join and leave while the training runs (KEP-2170, "TorchElasticPolicy").

* **Rendezvous**: the agents, one `torchrun` on every node, use the c10d store on the first node. Each round assigns
  new ranks, so none is set. A node that joins or leaves ends the round: all workers restart with another `WORLD_SIZE`,
  and continue from their last checkpoint. A runtime whose container has `PET_RDZV_ENDPOINT`, `PET_RDZV_BACKEND` or
  `PET_RDZV_ID` keeps its values, such as those of an etcd server; a TrainJob must not set them.
* **Host of the store**: torchrun resolves the name of the first node to find out whether it is the host itself. DNS may
  not have the name yet, or still have the pod before, and caches such an answer for half a minute. Then no node hosts a
  store, and all wait until their time limit (pytorch/pytorch#73380). `is_host=true` makes every node host one; all use
  that of the first, whose name is in the endpoint. So no two of them may share a network and its ports.
* **Time limits**: agents look for the first node as long as `read_timeout` lasts and wait for `minNodes` as long as
  `join_timeout`, since pods start minutes apart when images are pulled or machines are added. `last_call_timeout` is
  for how long the others wait once there are enough, which every change of the size costs; who comes later starts
  another round. A node that goes is missed after three times `keep_alive_interval`. One that goes in the last of these
  seconds of the last call still counts, and the others wait for it as long as `read_timeout`, before they fail and the
  Job replaces them. `PET_RDZV_CONF` of a runtime or TrainJob takes the place of all this, and of `is_host`.
* **A separate store for workers**: by default workers share the store of the agents, whose address nodes that join in a
  later round do not get (seen with PyTorch 2.13; pytorch/pytorch#135712 is about restarts), so they hang.
  `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1` gives the workers of every round a new one. It may be overridden as well.
* **Failure**: an agent whose worker fails starts its workers again, `maxRestarts` times; `torchrun` does so never by
  itself. Workers that lose a node fail as well, so that it takes a restart to survive a smaller size; a larger one
  costs none. An agent that is killed is a failed pod, which the Job replaces within its `backoffLimit`. With the first
  node the store is gone: the agents of all others fail, too, and when that is more than the Job endures JobSet starts
  everything again, likewise `maxRestarts` times.
* **Success**: the training is complete when any node is, as it was for a PyTorchJob: agents whose workers are done wait
  for each other, and a node that comes when the others have done their work is turned away. But they wait
  no longer than five minutes, and rank 0 may take longer to write what was learned: a `successPolicy` of the runtime
  counts instead. That of the runtime that we ship waits for the first node, which has rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from trainer.api.jobset import FailurePolicy
from trainer.api.trainingruntime import TorchElasticPolicy
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework import AdmissionWarning, Component, Finding, RuntimeInfo, Watch
from trainer.kube.field_errors import invalid
from trainer.kube.objects import Object
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer.kube.selection import Selection

MEETING_POINT = frozenset({"PET_RDZV_BACKEND", "PET_RDZV_ID", "PET_RDZV_ENDPOINT"})
"""Variables that a runtime may set, and a TrainJob may not."""
RESERVED = MEETING_POINT | {"PET_MAX_RESTARTS"}
"""Variables that only an elastic TrainJob must not set; `PET_RDZV_CONF` is not among them."""

_IS_HOST = "is_host=true,"
RENDEZVOUS_CONFIGURATION = (
    f"{_IS_HOST}join_timeout=1800,last_call_timeout=15,read_timeout=300,keep_alive_interval=2,keep_alive_max_attempt=3"
)
"""In seconds, torchrun has join_timeout=600, last_call_timeout=30, keep_alive_interval=5, and read_timeout=60, which is
less than it may take to pull an image."""


def validate(info: RuntimeInfo, train_job: TrainJob) -> Iterator[Finding]:
    """Refuse a number of nodes out of bounds and two values of restarts; warn where no failure is survived."""
    policy = info.ml_policy.torch and info.ml_policy.torch.elastic_policy
    if not policy:
        return
    field = f"{info.runtime} spec.mlPolicy.torch.elasticPolicy"
    nodes, bounds = info.trainer.count, info.trainer.elastic
    if bounds is not None and not bounds.least <= nodes <= bounds.most:
        yield invalid("spec.trainer.numNodes", nodes, f"must be between {bounds.least} and {bounds.most}: {field}")
    if train_job.spec.max_restarts is not None:
        return
    present = info.template.failure_policy and info.template.failure_policy.max_restarts
    if policy.max_restarts is None:
        text = "is not set, so torchrun never restarts workers: losing a node, or scaling down, makes all nodes fail"
        yield AdmissionWarning(f"{field}.maxRestarts", text)
    elif present not in {None, policy.max_restarts}:
        rule = f"must be left out or {policy.max_restarts}, as spec.mlPolicy.torch.elasticPolicy.maxRestarts says"
        yield invalid(f"{info.runtime} spec.template.spec.failurePolicy.maxRestarts", present, rule)


def endure(info: RuntimeInfo, train_job: TrainJob, policy: TorchElasticPolicy) -> None:
    """Set the restarts and the success policy of an elastic training."""
    job = info.job_of(info.trainer).template.spec
    if job.success_policy is None:
        job.success_policy = {"rules": [{"succeededCount": 1}]}
    limit = _max_restarts(train_job, policy)
    if limit is not None:
        present = info.template.failure_policy or FailurePolicy()
        info.template.failure_policy = present.model_copy(update={"max_restarts": limit})


def _max_restarts(train_job: TrainJob, policy: TorchElasticPolicy) -> int | None:
    stated = train_job.spec.max_restarts
    return policy.max_restarts if stated is None else stated


def rendezvous(info: RuntimeInfo, train_job: TrainJob, policy: TorchElasticPolicy) -> list[Object]:
    """The variables of the rendezvous; its id is the uid, which keeps out pods of a deleted TrainJob of the same name.

    It may stay when JobSet starts everything again, since the store that knows it goes with the first node. What the
    container of the runtime has for `MEETING_POINT` counts instead.
    """
    head = info.head_address()
    own = {each["name"]: each for each in info.main_container.env if each["name"] in MEETING_POINT}
    is_at_head = "PET_RDZV_ENDPOINT" not in own or _is_head(own["PET_RDZV_ENDPOINT"], info)
    variables = {
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": train_job.metadata.uid or train_job.metadata.name,
        "PET_RDZV_ENDPOINT": f"{head}:{info.rendezvous_port}",
        "PET_RDZV_CONF": RENDEZVOUS_CONFIGURATION if is_at_head else RENDEZVOUS_CONFIGURATION.removeprefix(_IS_HOST),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    limit = _max_restarts(train_job, policy)
    if limit is not None:
        variables["PET_MAX_RESTARTS"] = str(limit)
    return [own.get(name, {"name": name, "value": value}) for name, value in variables.items()]


def _is_head(endpoint: Object, info: RuntimeInfo) -> bool:
    """Whether a variable names the first node: with or without its domain, and perhaps by the name of the TrainJob."""
    host, _, _ = (endpoint.get("value") or "").replace("$(TRAINJOB_NAME)", info.job_name).partition(":")
    head = info.head_address()
    return host in {head, head.removesuffix(info.pod_domain)}


LABEL = "trainer.kubeflow.org/autoscaler-of"
"""Label of our autoscalers with the name of the TrainJob; only these are cached."""

WATCH = Watch(HORIZONTAL_POD_AUTOSCALERS, Selection(label_selector=LABEL))
"""Our autoscalers; a deleted one is created again."""


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
                "metrics": deepcopy(metrics),  # all TrainJobs share the runtime
            },
        },
        delete_when_finished=True,
    )


def _metrics(info: RuntimeInfo) -> list[Object]:
    policy = info.ml_policy.torch and info.ml_policy.torch.elastic_policy
    return (policy and policy.metrics) or []
