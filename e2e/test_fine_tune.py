"""From data and a pretrained model to an exported one: the example `fine-tune-tiny` as `make demo` runs it."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from e2e.kubectl import BIN
from packages.initializers.tests.servers.s3_server import LIBRARIES

EXAMPLE = Path(__file__).parents[1] / "examples" / "fine-tune-tiny"

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="the demo brings its own cluster"),
    pytest.mark.timeout(300),
]


@pytest.mark.skipif(
    find_spec("peft") is None or not LIBRARIES.is_dir(),
    reason="peft or moto is not installed: make nightly installs them",
)
def test_from_data_to_an_exported_model(tmp_path: Path) -> None:
    """Both are fetched, the model learns what it could not do, its adapters are in the bucket, and nothing is left."""
    result = subprocess.run(
        [BIN / "trainer", "demo", EXAMPLE],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    output = result.stdout
    assert result.returncode == 0, output + result.stderr
    for fetched in ("dataset-initializer | s3://data/falling is in", "model-initializer | hf://demo/tiny-llama is in"):
        assert f"initializer-0/{fetched}" in output
    assert re.search(r"^fine-tune-tiny  Running  \d+ %", output, re.MULTILINE), "the reporter shows its progress"
    (base, tuned) = (score(output, name) for name in ("base model", "fine-tuned"))
    assert base["accuracy"] < 50 < 90 < tuned["accuracy"]
    assert base["loss"] > 2 * tuned["loss"]
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        assert f"exporter-0 | s3://models/tiny-llama-falling/{file}, " in output
    assert re.search(r"^fine-tune-tiny  Complete", output, re.MULTILINE)
    assert output.splitlines()[-1] == f"test accuracy: {tuned['accuracy']} %"
    assert list(tmp_path.iterdir()) == []


def score(output: str, name: str) -> dict[str, float]:
    """What the first node has said about a model."""
    found = re.search(rf"^node-0 \| {name}: loss ([\d.]+), accuracy ([\d.]+) %$", output, re.MULTILINE)
    assert found is not None, output
    return {"loss": float(found[1]), "accuracy": float(found[2])}


@pytest.mark.parametrize("script", ["make_base.py", "train.py"])
def test_missing_library(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where libraries are missing the log has one line, with the command that installs them."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match=r"^error: import of torch .* make demo EXAMPLE=fine-tune-tiny installs"):
        runpy.run_path(str(EXAMPLE / script))
