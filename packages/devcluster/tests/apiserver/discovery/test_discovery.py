"""Discovery documents; the widget's are recorded from a real API server."""

from __future__ import annotations

from packages.devcluster.tests.apiserver.widgets import WIDGET
from trainer.kube.resource import NAMESPACES, PODS, Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.discovery import discovery

POD = ResourceDefinition(
    PODS,
    Strategy(),
    singular="pod",
    short_names=("po",),
    status_subresource=True,
    subresources=("log", "binding", "token"),
)
NAMESPACE = ResourceDefinition(NAMESPACES, Strategy())
BETA = ResourceDefinition(Resource("conformance.example.com", "v1beta1", "widgets", "Widget"), Strategy())
REVIEW = ResourceDefinition(
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False),
    Strategy(),
    verbs=("create",),
)
ALL = [NAMESPACE, POD, BETA, WIDGET, REVIEW]


def test_versions_are_ordered_by_stability_then_number() -> None:
    """The Kubernetes order: general availability before beta before alpha, higher numbers first."""
    versions = ["foo1", "v1alpha1", "v1beta2", "v1", "v10", "v2", "v1beta1", "v11alpha2"]
    ordered = ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo1"]
    assert sorted(versions, key=discovery.preference) == ordered
