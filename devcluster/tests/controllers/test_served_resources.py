from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.errors import NotFoundError
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.served_resources import served_resources

if TYPE_CHECKING:
    from trainer.kube.objects import Object

VERBS = ["create", "delete", "get", "list", "watch"]


def entry(name: str, kind: str, verbs: list[str] = VERBS) -> Object:
    return {"name": name, "kind": kind, "namespaced": True, "verbs": verbs}


class Discovery:
    """Legacy discovery documents; the group example.com vanishes between two requests."""

    async def request(self, method: str, path: str) -> Object:
        assert method == "GET"
        match path:
            case "/apis":
                versions = ("batch/v1", "example.com/v1")
                return {"groups": [{"preferredVersion": {"groupVersion": version}} for version in versions]}
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
            case _:
                raise NotFoundError(404, "gone")


async def test_resources_that_can_be_watched_and_deleted() -> None:
    """Subresources and resources that are only created are left out; a group that goes away is no error."""
    assert await served_resources(Discovery()) == [PODS, JOBS]
