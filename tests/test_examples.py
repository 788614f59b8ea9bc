"""The examples as users find them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.config_maps import COPIES, embedded, examples
from trainer.api.progress import REPORTER

each_example = pytest.mark.parametrize(
    "manifest", [pytest.param(manifest, id=manifest.parent.name) for manifest in examples()]
)


@each_example
def test_config_map_carries_the_scripts(manifest: Path) -> None:
    """The scripts that the pods run are the files that people read; `python -m tests.config_maps` makes them so."""
    documents = {doc["kind"]: doc for doc in yaml.load_all(manifest.read_text(), yaml.CSafeLoader)}

    for name, text in documents["ConfigMap"]["data"].items():
        assert text == COPIES.get(name, manifest.with_name(name)).read_text(), name


@each_example
def test_manifest_is_as_it_would_be_written(manifest: Path) -> None:
    """Writing the scripts anew changes nothing."""
    assert embedded(manifest) == manifest.read_text()


@each_example
def test_progress_is_reported(manifest: Path) -> None:
    """Every example reports its progress, and carries what it needs for that; or has a reporter put beside it."""
    script = manifest.with_name("train.py").read_text()
    documents = list(yaml.load_all(manifest.read_text(), yaml.CSafeLoader))
    (data,) = (doc["data"] for doc in documents if doc["kind"] == "ConfigMap")
    if any((doc["metadata"].get("annotations") or {}).get(REPORTER) == "true" for doc in documents):
        assert "report.py" not in data
        return

    imported = set(re.findall(r"^from (report|\w+_callback) import", script, re.MULTILINE))
    assert imported
    assert {f"{name}.py" for name in imported} | {"train.py", "report.py"} == set(data)
