"""Discovery documents, without which kopf watches nothing."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.server.collection import KINDS
from trainer.kube import Object


def _resource(plural: str, kind: str, *, namespaced: bool = True) -> Object:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    names = {"name": plural, "singularName": kind.lower(), "kind": kind}
    return names | {"namespaced": namespaced, "verbs": verbs}


ANSWERS: Mapping[str, Object] = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            *(_resource(kind.plural, kind.name) for kind in KINDS),
            # kopf starts only where there are namespaces, though it reads none for a cluster-wide operator.
            _resource("namespaces", "Namespace", namespaced=False),
        ],
    },
}
"""By path."""
