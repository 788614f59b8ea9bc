"""Commands about jobs of the Training Operator where nothing is installed that knows them."""

from __future__ import annotations

from importlib.metadata import EntryPoints
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trainer.cli.app import app

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: demo}
spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: "image:1"}]}}}}}
"""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("lint -f job.yaml", id="lint"),
        pytest.param("render --api-version v2alpha1 -f job.yaml", id="render"),
        pytest.param("crds --v1-jobs", id="crds"),
    ],
)
def test_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """The message names what to install."""
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB)
    monkeypatch.setattr("trainer.cli.offline.v1_jobs.entry_points", lambda group: EntryPoints())
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 1
    assert result.stderr == "error: jobs of kubeflow.org are not known here: pip install 'trainer-operator[v1-jobs]'\n"
