from __future__ import annotations

from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object
from trainer.kube.resource import JOBS, PODS, Resource
from trainer_devcluster.controllers.served_resources import served_resources

VERBS = ["create", "delete", "get", "list", "watch"]


def entry(name: str, kind: str, verbs: list[str] = VERBS) -> Object:
    return {"name": name, "kind": kind, "namespaced": True, "verbs": verbs}


def group(preferred: str, *others: str) -> Object:
    versions = [{"groupVersion": version} for version in (*others, preferred)]
    return {"preferredVersion": {"groupVersion": preferred}, "versions": versions}


class Discovery:
    """Legacy discovery documents; the group example.com vanishes between two requests."""

    async def request(self, method: str, path: str) -> Object:
        assert method == "GET"
        match path:
            case "/apis":
                return {
                    "groups": [
                        group("batch/v1"),
                        group("example.com/v1"),
                        group("example.org/v1", "example.org/v1beta1"),
                    ]
                }
            case "/api/v1":
                return {
                    "resources": [
                        entry("pods", "Pod"),
                        entry("pods/status", "Pod"),
                        entry("bindings", "Binding", ["create"]),
                    ]
                }
            case "/apis/batch/v1":
                return {"resources": [entry("jobs", "Job")]}
            case "/apis/example.org/v1":
                return {"resources": [entry("widgets", "Widget")]}
            case "/apis/example.org/v1beta1":
                return {"resources": [entry("widgets", "Widget"), entry("trials", "Trial")]}
            case _:
                raise NotFoundError(404, "gone")


async def test_resources_that_can_be_watched_and_deleted() -> None:
    """Subresources and resources that are only created are left out; a group that goes away is no error."""
    widgets = Resource("example.org", "v1", "widgets", "Widget")
    trials = Resource("example.org", "v1beta1", "trials", "Trial")
    assert await served_resources(Discovery()) == [PODS, JOBS, widgets, trials]
