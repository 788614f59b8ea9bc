"""What holds for the plugin of every framework and of every scheduler."""

from __future__ import annotations

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.framework import Pipeline, PluginContext
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.extension_points import (
    ComponentBuilder,
    CustomValidation,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
)
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.plugins import BUILT_IN

FRAMEWORKS = ("flux", "jax", "mpi", "paddle", "tensorflow", "torch", "xgboost")
JOBS = (replicated_job("launcher", {"name": "trainer", "image": "i"}), replicated_job("node"))
WRONG: Object = {"numNodes": 9999, "numProcPerNode": "cpu", "env": [{"name": "RANK", "value": "x"}]}
"""Settings against which one framework or another has something to say."""
RESERVED = {
    "jax": ["JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"],
    "mpi": ["OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args"],
    "paddle": ["PADDLE_MASTER", "POD_IP"],
    "tensorflow": ["TF_CONFIG", "TF_TASK_INDEX"],
    "torch": ["PET_NNODES", "PET_NODE_RANK"],
    "xgboost": ["DMLC_NUM_WORKER", "DMLC_TASK_ID"],
}


@pytest.mark.parametrize("other", FRAMEWORKS)
@pytest.mark.parametrize("name", [*FRAMEWORKS, "plainml", "coscheduling", "volcano"])
def test_other_runtimes_are_left_alone(name: str, other: str) -> None:
    """In the runtime of another framework, and without a gang, a plugin changes, builds and refuses nothing."""
    if name == other:
        return
    plugin = BUILT_IN[name](PluginContext(StaticReader(), {}))
    job = train_job(trainer=WRONG)
    info = extract(job, runtime(*JOBS, policy={other: {}}))
    before = repr(info)
    if isinstance(plugin, EnforceMLPolicy):
        plugin.enforce_ml_policy(info, job)
    if isinstance(plugin, EnforcePodGroupPolicy):
        plugin.enforce_pod_group_policy(info, job)
    assert repr(info) == before
    assert not isinstance(plugin, CustomValidation) or [*plugin.validate(info, None, job)] == []
    assert not isinstance(plugin, ComponentBuilder) or [*plugin.build(info, job)] == []


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_host_names_are_needed(name: str) -> None:
    """A runtime that turns DNS names off cannot train on several nodes."""
    context = PluginContext(StaticReader(), {})
    pipeline = Pipeline(Registry([BUILT_IN[name](context), BUILT_IN["jobset"](context)]))
    headless = {"network": {"enableDNSHostnames": False}}
    with pytest.raises(BuildError, match=r"network.enableDNSHostnames: Invalid value: false: must not be false"):
        pipeline.build(train_job(), runtime(*JOBS, policy={"numNodes": 2, name: {}}, jobset=headless))


@pytest.mark.parametrize("name", list(RESERVED))
def test_reserved_variables(name: str) -> None:
    """Variables by which processes find each other are the plugin's alone, wherever a TrainJob sets them."""
    plugin = BUILT_IN[name](PluginContext(StaticReader(), {}))
    env = [{"name": variable, "value": "0"} for variable in reversed(RESERVED[name])]
    targets = [{"name": job} for job in ("launcher", "node")]
    override = {"targetJobs": targets, "containers": [{"name": "trainer", "env": env}]}
    rule = f"Forbidden: must not set {', '.join(RESERVED[name])}, which the {name} plugin sets; remove it"
    for field, spec in (
        ("spec.trainer.env", {"trainer": {"env": env}}),
        ("spec.podSpecOverrides[0].containers[0].env", {"podSpecOverrides": [override]}),
    ):
        job = train_job(**spec)
        info = extract(job, runtime(*JOBS, policy={"numNodes": 2, name: {}}))
        assert isinstance(plugin, CustomValidation)
        assert f"{field}: {rule}" in [str(each) for each in plugin.validate(info, None, job)]
