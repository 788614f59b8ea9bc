"""Admission of TrainJobs whose gang is that of the manager's gangScheduling."""

from __future__ import annotations

import pytest

from tests.framework.static_reader import StaticReader
from tests.webhooks.blueprints import StaticRuntimes, blueprint, job
from tests.webhooks.requests import admit
from trainer.framework.pipeline import Pipeline
from trainer.framework.runtimes.default_gang import DefaultGang
from trainer.kube.resource import Resource
from trainer.manager import built_in_plugins
from trainer.plugins import coscheduling, volcano
from trainer.plugins.workload.versions import MEMBERSHIP, VERSIONS
from trainer.workloads import JOBSETS

SETTING = "gangScheduling of the manager's configuration: Forbidden: "
KINDS = [each.pod_groups for each in VERSIONS]


@pytest.mark.parametrize(
    ("source", "scheduler", "unserved", "refused", "message"),
    [
        pytest.param("workload", "", [], False, "", id="workload"),
        pytest.param("workload", "packing", [], False, "", id="workload-of-another-profile"),
        pytest.param("coscheduling", "", [], False, "", id="coscheduling"),
        pytest.param("coscheduling", "default-scheduler", [], False, "", id="coscheduling-of-the-default-scheduler"),
        pytest.param("volcano", "", [], False, "", id="volcano"),
        pytest.param("volcano", "default-scheduler", [], False, "", id="volcano-in-place-of-the-default-scheduler"),
        pytest.param(
            "workload", "", KINDS, False, "the cluster does not serve podgroups.scheduling.k8s.io; it needs Kubernetes",
            id="no-workload-api",
        ),
        pytest.param(
            "workload", "", [], True, "the JobSet of the cluster does not keep schedulingGroup of pods; install JobSet",
            id="old-jobset",
        ),
        pytest.param(
            "coscheduling", "", [coscheduling.POD_GROUPS], False,
            "the cluster does not have podgroups.scheduling.x-k8s.io; install Kubernetes scheduler-plugins",
            id="no-scheduler-plugins",
        ),
        pytest.param(
            "volcano", "", [volcano.POD_GROUPS], False,
            "the cluster does not have podgroups.scheduling.volcano.sh; install Volcano", id="no-volcano",
        ),
    ],
)  # fmt: skip
async def test_what_the_cluster_lacks(
    source: str, scheduler: str, unserved: list[Resource], refused: bool, message: str
) -> None:
    """It is said of the setting, as the runtime has no such field; and nobody is warned of what the setting chooses."""
    reader = StaticReader(unserved=unserved)
    if refused:
        reader.refusals[JOBSETS, MEMBERSHIP] = "dropped"
    runtimes = StaticRuntimes([DefaultGang(lambda: source, scheduler).applied(blueprint(name="plain"))])
    response = await admit(job(), runtimes=runtimes, plugins=Pipeline(built_in_plugins(reader)))
    assert response.message.startswith(f"{SETTING}{message}" if message else "")
    assert response.allowed is not bool(message)
    assert response.warnings == ()
