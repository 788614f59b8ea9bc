"""Plugins of one phase run in any order (KEP-2170, "Pipeline Framework"), so none may depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime, Runtime
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.framework.plugin_api.extension_points import Plugin, Watch
from trainer.framework.plugin_api.reports import Outcome
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.discovery import PluginsConfiguration, bundled_plugins, load_plugins
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object, key_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins import BUILT_IN
from trainer.workloads import JOBSETS

GOLDEN = Path(__file__).parent / "plugins" / "golden"


class Labeller:
    """A third-party plugin with a part in every phase that others take part in as well."""

    name = "labeller"
    pod_group_policy_sources: frozenset[str] = frozenset()

    def watches(self) -> list[Watch]:
        """See `WatchExtension`."""
        return [Watch(CONFIG_MAPS)]

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[AdmissionWarning]:
        """See `CustomValidation`."""
        yield AdmissionWarning("metadata.labels", "are going to be added")

    def enforce_pod_group_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """See `EnforcePodGroupPolicy`."""
        info.trainer.labels["gang"] = f"{train_job.metadata.name}-{sum(pods.count for pods in info.pod_sets)}"

    def build(self, info: RuntimeInfo, train_job: TrainJob) -> Iterator[Component]:
        """See `ComponentBuilder`: everything that earlier phases have to say is here."""
        data = {pods.name: " ".join(pods.endpoints) for pods in info.pod_sets}
        metadata = {"name": f"{train_job.metadata.name}-hosts", "namespace": train_job.metadata.namespace}
        yield Component(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    def terminal_condition(self, train_job: TrainJob) -> Outcome | None:
        """See `TerminalCondition`."""
        return Outcome(ConditionType.FAILED, "Labelled", "there are too many labels")


def golden(case: str) -> tuple[TrainJob, Runtime]:
    """A TrainJob and the runtime that it builds on."""
    blueprint, job, _ = yaml.load_all((GOLDEN / f"{case}.yaml").read_text(), yaml.CSafeLoader)
    return TrainJob.from_object(job), ClusterTrainingRuntime.from_object(blueprint)


@cache
def cases() -> dict[str, tuple[TrainJob, Runtime]]:
    """TrainJobs with the runtimes that they build on."""
    gang: Any = {"podGroupPolicy": {"coscheduling": {}}}
    env = [{"name": "PET_NODE", "value": "a"}]
    override = {"targetJobs": [{"name": "node"}], "containers": [{"name": "trainer", "env": env}]}
    return {case: golden(case) for case in ("torch", "jax", "llm-fine-tuning")} | {
        "plain": (train_job(trainer={"numNodes": 3, "env": env}), runtime()),
        "overridden": (train_job(podSpecOverrides=[override], labels={"a": "b"}), runtime(policy={"torch": {}})),
        "xgboost": (train_job(), runtime(policy={"xgboost": {}, "numNodes": 2})),
        "paddle": (train_job(), runtime(policy={"paddle": {}, "numNodes": 2})),
        "tensorflow": (train_job(), runtime(policy={"tensorflow": {}, "numNodes": 2})),
        "gang": (train_job(), runtime(policy={"jax": {}, "numNodes": 2}, **gang)),
        "mpi": (
            train_job(trainer={"command": ["mpirun"]}),
            runtime(
                replicated_job("launcher"),
                replicated_job("node"),
                policy={"mpi": {"runLauncherAsNode": True}, "numNodes": 2},
                **gang,
            ),
        ),
        "several jobs": (train_job(), runtime(replicated_job("launcher"), replicated_job("node"), policy={"jax": {}})),
        "refused": (train_job(trainer={"numProcPerNode": 2}), runtime(policy={"jax": {}})),
    }


ENABLED = load_plugins(bundled_plugins(BUILT_IN), PluginsConfiguration())


def registry(order: list[int], jobset: Object | None = None) -> Registry:
    """The built-in plugins and another one, made anew and registered in this order."""
    reader = StaticReader(jobset) if jobset else StaticReader()
    plugins: list[Plugin] = [*(plugin.make(reader) for plugin in ENABLED), Labeller()]
    return Registry([plugins[position] for position in order])


def flow(case: str, order: list[int]) -> dict[str, object]:
    """What all phases say about a TrainJob; lists whose order means nothing are sorted."""
    job, blueprint = cases()[case]
    ended = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "done"}
    jobset = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "ownerReferences": [{"uid": job.metadata.uid, "controller": True, "kind": "TrainJob"}],
        },
        "spec": {"suspend": True, "replicatedJobs": []},
        "status": {"conditions": [ended], "terminalState": "Completed"},
    }
    pipeline = Pipeline(registry(order, jobset))
    review = pipeline.review(job, blueprint)
    components = [] if review.errors else pipeline.build(job, blueprint)
    return {
        "watches": sorted(watch.resource.plural for watch in pipeline.watches()),
        "review": review,
        "components": sorted(((c.resource.kind, key_of(c.object), c.object) for c in components), key=lambda c: c[:2]),
        "suspension": [component.object for component in pipeline.suspension(job)],
        "outcome": pipeline.outcome(job),
        "status": pipeline.status(job),
    }


@pytest.mark.parametrize("case", list(cases()))
def test_the_flow_does_not_depend_on_the_order_of_plugins(case: str) -> None:
    """However plugins are registered, the same TrainJob has the same findings, objects and end."""
    positions = list(range(len(ENABLED) + 1))
    expected = flow(case, positions)

    @settings(max_examples=30, deadline=None, database=None)
    @given(order=st.permutations(positions))
    def holds(order: list[int]) -> None:
        assert flow(case, order) == expected

    holds()
    assert bool(expected["components"]) == (case != "refused")
