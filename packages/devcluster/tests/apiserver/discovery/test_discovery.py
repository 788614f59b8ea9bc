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


def test_core_resource_list() -> None:
    """The core group is called by its version only; subresources have kinds and verbs of their own."""
    document = discovery.resource_list(ALL, "", "v1")
    assert document is not None
    assert document["groupVersion"] == "v1"
    by_name = {entry["name"]: (entry["kind"], entry["verbs"], entry.get("group")) for entry in document["resources"]}
    assert by_name["pods/log"] == ("Pod", ["get"], None)
    assert by_name["pods/binding"] == ("Binding", ["create"], None)
    assert by_name["pods/token"] == ("TokenRequest", ["create"], "authentication.k8s.io")
    assert by_name["pods"][1] == ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    assert document["resources"][0]["singularName"] == "namespace"


def test_aggregated_documents() -> None:
    """The aggregated form has the core group in one document and all others in the other."""
    core = discovery.aggregated(ALL, core=True)
    assert (core["kind"], core["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    ((version,),) = [group["versions"] for group in core["items"]]
    assert [entry["resource"] for entry in version["resources"]] == ["namespaces", "pods"]
    pods = version["resources"][1]
    assert pods["scope"] == "Namespaced"
    assert pods["responseKind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert {entry["subresource"] for entry in pods["subresources"]} == {"log", "binding", "token", "status"}
    others = discovery.aggregated(ALL, core=False)
    assert [group["metadata"]["name"] for group in others["items"]] == [
        "conformance.example.com",
        "authorization.k8s.io",
    ]
    assert [entry["version"] for entry in others["items"][0]["versions"]] == ["v1", "v1beta1"]
    widget = others["items"][0]["versions"][0]["resources"][0]
    assert (widget["shortNames"], widget["categories"], widget["singularResource"]) == (["wid"], ["all"], "widget")
    scale = next(entry for entry in widget["subresources"] if entry["subresource"] == "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert others["items"][1]["versions"][0]["resources"][0]["verbs"] == ["create"]


def test_versions_are_ordered_by_stability_then_number() -> None:
    """The Kubernetes order: general availability before beta before alpha, higher numbers first."""
    versions = ["foo1", "v1alpha1", "v1beta2", "v1", "v10", "v2", "v1beta1", "v11alpha2"]
    ordered = ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo1"]
    assert sorted(versions, key=discovery.preference) == ordered
