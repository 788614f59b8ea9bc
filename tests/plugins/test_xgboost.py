"""XGBoost: the environment of tracker and workers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from tests.plugins import enforcement
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.kube.objects import Object
from trainer.plugins.xgboost import XGBoost

RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
POLICY: Object = {"numNodes": 3, "xgboost": {}}


enforced = partial(enforcement.enforced, XGBoost(), policy=POLICY)


def found(spec: Any, container: Object | None = None, policy: Any = None) -> list[str]:
    """What validation finds."""
    job = train_job(**spec)
    jobs = replicated_job("node", {"name": "trainer"} | (container or {}))
    info = extract(job, runtime(jobs, policy=POLICY if policy is None else policy))
    return [
        f"warning: {finding}" if isinstance(finding, AdmissionWarning) else str(finding)
        for finding in XGBoost().validate(info, None, job)
    ]


def gpus(number: int, processes: int | str | None = None) -> Any:
    """`spec` with GPUs for each node."""
    trainer: Object = {"resourcesPerNode": {"limits": {"cpu": 8, "nvidia.com/gpu": number}}}
    return {"trainer": trainer | ({} if processes is None else {"numProcPerNode": processes})}


def test_variables_without_trainer_settings() -> None:
    """All variables are set even if the TrainJob changes nothing about the trainer."""
    main = enforced().main_container
    assert main.env == [
        {"name": "DMLC_TRACKER_URI", "value": "demo-node-0-0.demo"},
        {"name": "DMLC_TRACKER_PORT", "value": "29400"},
        {"name": "DMLC_TASK_ID", "valueFrom": RANK},
        {"name": "DMLC_NUM_WORKER", "value": "3"},
        {"name": "DMLC_NUM_WORKER_PER_NODE", "value": "1"},
    ]
    assert main.ports == [{"containerPort": 29400, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("spec", "container", "workers", "per_node"),
    [
        pytest.param({}, {}, "3", "1", id="runtime"),
        pytest.param({}, {"resources": {"limits": {"amd.com/gpu": 2}}}, "6", "2", id="gpus-of-the-runtime"),
        pytest.param(gpus(0), {}, "3", "1", id="no-gpus"),
        pytest.param({"trainer": {"numNodes": 2, "numProcPerNode": 3}}, {}, "6", "3", id="number-without-gpus"),
    ],
)
def test_number_of_workers(spec: Any, container: Any, workers: str, per_node: str) -> None:
    """There is a worker for each GPU of every node, or one on every node, or as many as the TrainJob says."""
    values = env_of({"env": enforced(spec, container=container).main_container.env})
    assert (values["DMLC_NUM_WORKER"], values["DMLC_NUM_WORKER_PER_NODE"]) == (workers, per_node)


def test_order_of_variables() -> None:
    """Variables of the runtime give way to ours; those of the TrainJob come last and can refer to ours."""
    env = [{"name": "DMLC_NUM_WORKER", "value": "wrong"}, {"name": "A", "value": "runtime"}]
    spec = {"trainer": {"env": [{"name": "ID", "value": "worker-$(DMLC_TASK_ID)"}]}}
    values = env_of({"env": enforced(spec, container={"env": env}).main_container.env})
    assert list(values) == [
        "DMLC_NUM_WORKER", "A", "DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER_PER_NODE",
        "ID",
    ]  # fmt: skip
    assert values["DMLC_NUM_WORKER"] == "3"


def test_tracker_in_another_subdomain() -> None:
    """The tracker is on the first pod of the trainer, in the subdomain of the JobSet."""
    values = env_of({"env": enforced(network={"subdomain": "forest"}).main_container.env})
    assert values["DMLC_TRACKER_URI"] == "demo-node-0-0.forest"


def variable(name: str) -> Object:
    return {"name": name, "value": "x"}


@pytest.mark.parametrize(
    ("spec", "findings"),
    [
        pytest.param({}, [], id="fine"),
        pytest.param(
            {"trainer": {"numProcPerNode": "cpu"}},
            [
                (
                    'spec.trainer.numProcPerNode: Invalid value: "cpu": must be a number, gpu or auto: '
                    "one XGBoost worker uses all CPUs of a node"
                )
            ],
            id="cpu",
        ),
        pytest.param(
            gpus(2, 3),
            [
                (
                    "spec.trainer.numProcPerNode: Invalid value: 3: must be at most 2, the GPUs of a node: "
                    "two XGBoost workers cannot use one"
                )
            ],
            id="more-workers-than-gpus",
        ),
        pytest.param(
            gpus(4, 1),
            [
                (
                    "warning: spec.trainer.numProcPerNode: is 1 on a node with 4 GPUs, of which a worker uses one; "
                    "auto means one for each GPU"
                )
            ],
            id="idle-gpus",
        ),
        pytest.param(
            gpus(4),
            [
                (
                    "warning: spec.trainer.numProcPerNode: is one for each GPU: XGBoost waits until the training has "
                    "started 4 workers on every node, as DMLC_NUM_WORKER_PER_NODE says; "
                    "for a training that is one worker set it to 1"
                )
            ],
            id="several-workers-that-nobody-asked-for",
        ),
    ],
)
def test_validation(spec: Any, findings: list[str]) -> None:
    """Reserved variables and workers that cannot be are refused; idle GPUs and missing workers are warned of."""
    assert found(spec) == findings
