"""The schemas of built-in types."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from trainer.api.builtin_schemas import built_in_schema

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "EnvFromSource", "EnvVar", "LabelSelector", "MetricSpec", "PersistentVolumeClaim", "PodFailurePolicy",
        "PodTemplateSpec", "ResourceRequirements", "SuccessPolicy", "Toleration", "Volume", "VolumeMount",
    ],
)  # fmt: skip
def test_schemas_stand_alone(name: str) -> None:
    """There are no references in them, and every node has a type."""

    def check(schema: Any) -> None:
        assert "$ref" not in schema
        assert ("type" in schema) != ("x-kubernetes-int-or-string" in schema)
        for child in (schema.get("properties") or {}).values():
            check(child)
        for keyword in ("items", "additionalProperties"):
            if keyword in schema:
                check(schema[keyword])

    check(built_in_schema(name))


def test_the_data_file_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python hack/generate_pod_schema.py` makes it; nobody edits it by hand."""
    monkeypatch.syspath_prepend(ROOT / "hack")
    made = importlib.import_module("generate_pod_schema").document()
    assert json.loads(gzip.decompress((ROOT / "trainer" / "api" / "builtin_schemas.json.gz").read_bytes())) == made


def test_schemas_are_private() -> None:
    """Changing one changes no other."""
    built_in_schema("EnvVar")["properties"].clear()
    assert set(built_in_schema("EnvVar")["properties"]) == {"name", "value", "valueFrom"}
