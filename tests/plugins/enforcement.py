"""What the plugin of a framework makes of a runtime of nodes and a TrainJob."""

from __future__ import annotations

from typing import Any

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.extension_points import EnforceMLPolicy
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object


def enforced(
    plugin: EnforceMLPolicy,
    spec: Any = None,
    *,
    policy: Any,
    container: Object | None = None,
    name: str = "demo",
    **jobset: Any,
) -> RuntimeInfo:
    """RuntimeInfo after the plugin and the variables of the TrainJob, whose settings are `spec`."""
    job = train_job(name, **(spec or {}))
    nodes = replicated_job("Node", {"name": "trainer"} | (container or {}))
    info = extract(job, runtime(nodes, policy=policy, jobset=jobset))
    plugin.enforce_ml_policy(info, job)
    apply_trainer_env(info, job)
    return info
