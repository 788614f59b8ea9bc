"""Routing of URL paths."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.builders import CONFIG_MAP
from trainer.kube.errors import ApiError
from trainer.kube.resource import NAMESPACES, PODS, Resource
from trainer_devcluster.apiserver.definitions.resource_definition import (
    ResourceDefinition,
    ResourceRegistry,
    ScalePaths,
)
from trainer_devcluster.apiserver.definitions.routing import resolve
from trainer_devcluster.apiserver.definitions.strategy import Strategy

STRATEGY = Strategy()
REGISTRY = ResourceRegistry(
    [
        CONFIG_MAP,
        ResourceDefinition(PODS, STRATEGY, status_subresource=True, subresources=("log", "binding")),
        ResourceDefinition(NAMESPACES, STRATEGY, verbs=("get", "list", "create", "delete"), subresources=("finalize",)),
        ResourceDefinition(
            Resource("example.com", "v1", "widgets", "Widget"), STRATEGY, scale=ScalePaths(".spec.n", ".status.n")
        ),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("GET", "/api/v1/configmaps/a", 404, id="namespaced without namespace"),
        pytest.param("POST", "/api/v1/configmaps", 405, id="create in all namespaces"),
    ],
)
def test_refused(method: str, path: str, code: int) -> None:
    """Unknown resources are not found; known ones refuse verbs that they do not have."""
    with pytest.raises(ApiError) as caught:
        resolve(REGISTRY, method, path)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param("/apis/apps/v1/namespaces/ns/statefulsets/s", "statefulsets.apps", id="in a namespace"),
        pytest.param("/api/v1/persistentvolumes", "persistentvolumes", id="core"),
    ],
)
def test_kinds_that_are_not_served_are_refused_by_name(path: str, name: str) -> None:
    """A client that knows a kind from other clusters reads that this one does not have it."""
    with pytest.raises(ApiError, match=f"the dev cluster does not serve {name}$") as caught:
        resolve(REGISTRY, "GET", path)
    assert caught.value.code == 404
