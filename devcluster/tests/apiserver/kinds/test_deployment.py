"""Workloads of apps/v1: defaults, validation with the texts of the real server, and what is said about them."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.kinds.context import created, make_context, updated
from trainer_devcluster.apiserver.definitions.strategy import WriteContext
from trainer_devcluster.apiserver.kinds.deployment import DeploymentStrategy, ReplicaSetStrategy
from trainer_devcluster.apiserver.kinds.stateful_set import DaemonSetStrategy, StatefulSetStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.kinds.workload import WorkloadStrategy

STRATEGIES = [DeploymentStrategy(), ReplicaSetStrategy(), StatefulSetStrategy(), DaemonSetStrategy()]
MISMATCH = '{"app":"b"}: `selector` does not match template `labels`'
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def make_workload(labels: dict[str, str] | None = None, **spec: Any) -> Object:
    template = {
        "metadata": {"labels": labels or {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    return {"metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template} | spec}


@pytest.mark.parametrize(
    ("strategy", "defaults", "status"),
    [
        pytest.param(
            DeploymentStrategy(),
            {
                "replicas": 1,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            {},
            id="Deployment",
        ),
        pytest.param(ReplicaSetStrategy(), {"replicas": 1}, {"replicas": 0}, id="ReplicaSet"),
        pytest.param(
            StatefulSetStrategy(),
            {
                "replicas": 1,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            },
            {"replicas": 0, "availableReplicas": 0},
            id="StatefulSet",
        ),
        pytest.param(
            DaemonSetStrategy(),
            {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "revisionHistoryLimit": 10,
            },
            {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
            id="DaemonSet",
        ),
    ],
)
def test_defaults(strategy: WorkloadStrategy, defaults: Object, status: Object) -> None:
    """A workload gets the defaults of the real server, its template those of pods, and a first status."""
    obj, causes = created(strategy, make_workload())
    assert causes == []
    template = obj["spec"].pop("template")
    assert template["spec"]["restartPolicy"] == "Always"
    assert template["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert obj["spec"] == {"selector": {"matchLabels": {"app": "a"}}} | defaults
    assert obj["status"] == status


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.kind)
def test_clients_are_told_that_no_pods_are_made(strategy: WorkloadStrategy) -> None:
    """The warning names the kind."""
    warnings: list[str] = []
    context = make_context()
    told = WriteContext(None, False, context.now, context.service_ip, context.stored, warn=warnings.append)
    obj = make_workload()
    strategy.default(obj, told)
    strategy.prepare_for_create(obj, told)
    assert warnings == [
        f"apps/v1 {strategy.kind} is only stored: the dev cluster runs no controller for it, so that no pods are made"
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"selector": None}, ["spec.selector: Required value"], id="no selector"),
        pytest.param(
            {"selector": {}},
            [
                "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
                "spec.selector: Invalid value: {}: invalid label selector",
            ],
            id="empty selector",
        ),
        pytest.param(
            {"replicas": -1},
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            id="negative replicas",
        ),
        pytest.param(
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            [
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            ],
            id="rolling update of another strategy",
        ),
        pytest.param(
            {"strategy": {"type": "Blue"}},
            ['spec.strategy.type: Unsupported value: "Blue": supported values: "Recreate", "RollingUpdate"'],
            id="unknown strategy",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}},
            ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
            id="no step possible",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxUnavailable": "many"}}},
            [f'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "many": {PERCENT}'],
            id="no percentage",
        ),
        pytest.param(
            {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
            ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
            id="deadline before ready",
        ),
    ],
)
def test_wrong_deployments_are_refused(spec: dict[str, Any], expected: list[str]) -> None:
    """Each cause has the path, the value and the text of the real server."""
    causes = created(DeploymentStrategy(), make_workload(**spec))[1]
    assert [str(cause) for cause in causes] == expected


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.kind)
def test_selector_has_to_match_the_template(strategy: WorkloadStrategy) -> None:
    """Pods that the workload would not find again are refused."""
    causes = created(strategy, make_workload(labels={"app": "b"}))[1]
    assert [str(cause) for cause in causes] == [f"spec.template.metadata.labels: Invalid value: {MISMATCH}"]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.kind)
def test_templates_are_of_pods_that_run_forever(strategy: WorkloadStrategy) -> None:
    """Restart policies other than Always and deadlines are refused."""
    obj = make_workload()
    obj["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": 5}
    kind = "ReplicaSet" if strategy.kind == "Deployment" else strategy.kind
    assert [str(cause) for cause in created(strategy, obj)[1]] == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        f"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {kind} is not Supported",
    ]


@pytest.mark.parametrize(
    "strategy", [DeploymentStrategy(), ReplicaSetStrategy(), DaemonSetStrategy()], ids=lambda strategy: strategy.kind
)
def test_selector_is_immutable(strategy: WorkloadStrategy) -> None:
    """Pods of the old selector would be orphaned."""
    old, _ = created(strategy, make_workload())
    new = deepcopy(old)
    new["spec"]["selector"] = {"matchLabels": {"app": "b"}}
    new["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    assert [str(cause) for cause in updated(strategy, new, old)] == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'
    ]


def test_only_some_fields_of_a_stateful_set_may_change() -> None:
    """The refusal lists those that may."""
    old, _ = created(StatefulSetStrategy(), make_workload(serviceName="s"))
    new = deepcopy(old)
    new["spec"] |= {"replicas": 3, "serviceName": "t"}
    assert [str(cause) for cause in updated(StatefulSetStrategy(), new, old)] == [
        (
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
            "are forbidden"
        )
    ]


def test_versions_of_a_daemon_set_template_are_counted() -> None:
    """The annotation that the real server writes goes up with every change of the template."""
    strategy, annotation = DaemonSetStrategy(), "deprecated.daemonset.template.generation"
    old, _ = created(strategy, make_workload())
    assert old["metadata"]["annotations"] == {annotation: "1"}
    new = deepcopy(old)
    assert updated(strategy, new, old) == []
    assert new["metadata"]["annotations"] == {annotation: "1"}
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    assert updated(strategy, new, old) == []
    assert new["metadata"]["annotations"] == {annotation: "2"}
