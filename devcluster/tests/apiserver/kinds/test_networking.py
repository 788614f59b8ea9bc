"""Ingresses, NetworkPolicies, storage classes, volumes and disruption budgets: stored, but checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.apiserver.kinds.context import created, updated
from trainer_devcluster.apiserver.kinds.disruption_budget import PodDisruptionBudgetStrategy
from trainer_devcluster.apiserver.kinds.networking import IngressStrategy, NetworkPolicyStrategy
from trainer_devcluster.apiserver.kinds.storage_class import PersistentVolumeStrategy, StorageClassStrategy

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.definitions.strategy import Strategy

Object = dict[str, Any]

BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}


def make_rule(**path: Any) -> Object:
    return {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND} | path]}}]}


@pytest.mark.parametrize(
    ("strategy", "spec", "expected"),
    [
        pytest.param(IngressStrategy(), make_rule(), [], id="ingress"),
        pytest.param(
            IngressStrategy(),
            {},
            ["spec: Invalid value: {}: either `defaultBackend` or `rules` must be specified"],
            id="empty ingress",
        ),
        pytest.param(
            IngressStrategy(),
            make_rule(pathType=None),
            ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
            id="path type",
        ),
        pytest.param(
            IngressStrategy(),
            make_rule(path="x"),
            ['spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path'],
            id="relative path",
        ),
        pytest.param(
            IngressStrategy(),
            {"defaultBackend": {"service": {"name": "s"}}},
            ["spec.defaultBackend: Required value: port name or number is required"],
            id="port",
        ),
        pytest.param(NetworkPolicyStrategy(), {}, [], id="network policy"),
        pytest.param(
            NetworkPolicyStrategy(),
            {"ingress": [{"from": [{}]}]},
            ["spec.ingress[0].from[0]: Required value: must specify a peer"],
            id="no peer",
        ),
        pytest.param(PodDisruptionBudgetStrategy(), {"minAvailable": 1}, [], id="budget"),
        pytest.param(
            PodDisruptionBudgetStrategy(),
            {"maxUnavailable": "101%"},
            ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
            id="too many percent",
        ),
        pytest.param(PersistentVolumeStrategy(), VOLUME, [], id="volume"),
        pytest.param(
            PersistentVolumeStrategy(),
            {"capacity": {"storage": "much"}},
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                (
                    'spec.capacity[storage]: Invalid value: "much": quantities must match the regular expression '
                    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                ),
                "spec: Required value: must specify a volume type",
            ],
            id="wrong volume",
        ),
    ],
)
def test_validation(strategy: Strategy, spec: Object, expected: list[str]) -> None:
    """Each cause has the path, the value and the text of the real server."""
    causes = created(strategy, {"metadata": {"name": "x"}, "spec": spec})[1]
    assert [str(cause) for cause in causes] == expected


def test_directions_of_a_network_policy() -> None:
    """Outgoing traffic is meant only where there are rules for it."""
    policy, _ = created(NetworkPolicyStrategy(), {"metadata": {"name": "x"}, "spec": {"egress": [{}]}})
    assert policy["spec"] == {"egress": [{}], "podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_storage_class_says_what_may_not_change() -> None:
    """Policies are filled in; provisioner and parameters stay."""
    strategy = StorageClassStrategy()
    old, causes = created(strategy, {"metadata": {"name": "x"}, "provisioner": "example.com/nfs"})
    assert causes == []
    assert (old["reclaimPolicy"], old["volumeBindingMode"]) == ("Delete", "Immediate")
    new = {**old, "provisioner": "other", "volumeBindingMode": "WaitForFirstConsumer"}
    assert [str(cause) for cause in updated(strategy, new, old)] == [
        "provisioner: Forbidden: updates to provisioner are forbidden.",
        'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
    ]
