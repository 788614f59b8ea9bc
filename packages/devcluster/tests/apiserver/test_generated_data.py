"""The data files about built-in kinds are what their scripts make of the development dependencies."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path

import pytest

from trainer_devcluster.apiserver.kinds import built_in_kinds
from trainer_devcluster.feature_gates import FeatureGates

ROOT = Path(__file__).parents[4]
DATA = ROOT / "packages" / "devcluster" / "src" / "trainer_devcluster" / "apiserver"


@pytest.mark.parametrize(
    ("script", "file"),
    [
        pytest.param("generate_builtin_types", "objects/builtin_types.json.gz", id="types"),
        pytest.param("generate_protobuf_fields", "wire/protobuf_fields.json.gz", id="protobuf"),
    ],
)
def test_data_is_what_its_script_makes(script: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Running the script again changes nothing; nobody edits the file by hand."""
    monkeypatch.syspath_prepend(ROOT / "hack")
    made = importlib.import_module(script).document()
    assert json.loads(gzip.decompress((DATA / file).read_bytes())) == json.loads(json.dumps(made))


@pytest.mark.parametrize("file", ["objects/builtin_types.json.gz", "wire/protobuf_fields.json.gz"])
def test_every_served_kind_is_in_the_data(file: str) -> None:
    """Every kind that the server has from the start can be merged, applied, and sent by Go clients."""
    known = json.loads(gzip.decompress((DATA / file).read_bytes()))["kinds"]
    definitions = built_in_kinds(FeatureGates(generic_workload=True))
    kinds = {f"{definition.resource.api_version}/{definition.resource.kind}" for definition in definitions}
    # Go clients send these two groups as JSON.
    as_json = ("apiextensions.k8s.io/", "admissionregistration.k8s.io/") if "protobuf" in file else ()
    assert {kind for kind in kinds - known.keys() if not kind.startswith(as_json or ("-",))} == set()
