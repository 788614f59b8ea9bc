"""The definitions of Kubeflow Trainer (Go) that the end-to-end tests derive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.released_definitions import released_definitions

UPSTREAM = Path(__file__).parents[3] / "shared" / "peer" / "upstream" / "crds"


def without_descriptions(value: Any) -> Any:
    """A schema without its descriptions, which accept and refuse nothing."""
    match value:
        case dict():
            return {
                name: without_descriptions(each)
                for name, each in value.items()
                if name != "description" or not isinstance(each, str)
            }
        case list():
            return [without_descriptions(each) for each in value]
    return value


def compared(definition: dict[str, Any]) -> Any:
    """All of a definition but the spec of the objects, of which `tests/v1alpha1` compares the rules."""
    spec = without_descriptions(definition["spec"])
    (version,) = spec["versions"]
    status = version.pop("schema")["openAPIV3Schema"]["properties"].get("status")
    return definition["metadata"]["name"], spec, status


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the files of Kubeflow Trainer (Go) are not beside the checkout")
def test_definitions() -> None:
    """Names, columns and status are those of the release."""
    theirs = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted(UPSTREAM.glob("*.yaml"))]
    ours = sorted(released_definitions(), key=lambda each: str(each["metadata"]["name"]))
    assert [compared(each) for each in ours] == [compared(each) for each in theirs]
