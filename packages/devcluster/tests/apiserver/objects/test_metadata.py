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
        pytest.param({"name": "a", "annotations": {"a/b/c": ""}}, ["metadata.annotations"], id="bad annotation key"),
        pytest.param(
            {"name": "a", "annotations": {"k": "x" * 256 * 1024}}, ["metadata.annotations"], id="long annotations"
        ),
    ],
)
def test_validate(metadata: Object, fields: list[str]) -> None:
    """Each wrong part of the metadata is named."""
    assert [cause.field for cause in validate(metadata, CONFIG_MAP.name_rule)] == fields
