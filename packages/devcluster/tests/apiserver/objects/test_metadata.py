"""Object metadata."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.builders import CONFIG_MAP
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.objects.metadata import validate

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        pytest.param({}, ["metadata.name"], id="no name"),
        pytest.param({"name": "Bad_Name"}, ["metadata.name"], id="bad name"),
        pytest.param({"name": "a", "labels": {"bad key!": "v"}}, ["metadata.labels"], id="bad label key"),
        pytest.param({"name": "a", "labels": {"k": "bad value!"}}, ["metadata.labels"], id="bad label value"),
        pytest.param({"name": "a", "annotations": {"a/b/c": ""}}, ["metadata.annotations"], id="bad annotation key"),
        pytest.param(
            {"name": "a", "annotations": {"k": "x" * 256 * 1024}}, ["metadata.annotations"], id="long annotations"
        ),
        pytest.param({"name": "a", "finalizers": ["not valid!"]}, ["metadata.finalizers"], id="bad finalizer"),
        pytest.param(
            {"name": "a", "ownerReferences": [{**OWNER, "uid": ""}]},
            ["metadata.ownerReferences.uid"],
            id="owner without uid",
        ),
        pytest.param(
            {"name": "a", "ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "controller": True}]},
            ["metadata.ownerReferences"],
            id="two controllers",
        ),
    ],
)
def test_validate(metadata: Object, fields: list[str]) -> None:
    """Each wrong part of the metadata is named."""
    assert [cause.field for cause in validate(metadata, CONFIG_MAP.name_rule)] == fields
