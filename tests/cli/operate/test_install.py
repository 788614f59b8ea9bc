"""`trainer install-runtimes -f` reads the runtimes of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.errors import BadInputError
from trainer.cli.installation import Installation, Installed
from trainer.cli.operate.install import runtimes_in
from trainer.v1alpha1.client import SERVED
from trainer_kube_testing import FakeClient, ManualClock

RUNTIME = "apiVersion: trainer.kubeflow.org/{}\nkind: ClusterTrainingRuntime\nmetadata: {{name: {}}}\n"


async def test_runtimes_of_files(client: FakeClient, clock: ManualClock, tmp_path: Path) -> None:
    """Those of all files are applied, in the version in which they are written."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(f"{RUNTIME.format('v1alpha1', 'a')}---\n{RUNTIME.format('v1alpha1', 'b')}")
    second.write_text(RUNTIME.format("v2alpha1", "c"))
    client.serve(SERVED[CLUSTER_TRAINING_RUNTIMES])

    outcomes = await Installation(client, clock).run(runtimes_in([str(first), str(second)]), 60)

    assert outcomes == dict.fromkeys("abc", Installed.APPLIED)
    requests = [(request.resource.version, request.name) for request in client.requests if request.verb == "apply"]
    assert requests == [("v1alpha1", "a"), ("v1alpha1", "b"), ("v2alpha1", "c")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n",
            "document 1: must be a ClusterTrainingRuntime, not v1 Secret",
            id="kind",
        ),
        pytest.param(
            RUNTIME.format("v1alpha1", "x").replace("kubeflow.org", "example.com"),
            "document 1: must be a ClusterTrainingRuntime, not trainer.example.com/v1alpha1 ClusterTrainingRuntime",
            id="group",
        ),
        pytest.param(RUNTIME.format("v1alpha1", ""), "document 1: metadata.name: Required value", id="name"),
        pytest.param("kind: [\n", "line 2", id="yaml"),
        pytest.param("---\n", "there is no ClusterTrainingRuntime in it", id="empty"),
    ],
)
def test_files_without_runtimes(tmp_path: Path, text: str, message: str) -> None:
    """The message names the file and the document."""
    file = tmp_path / "runtimes.yaml"
    file.write_text(text)
    with pytest.raises(BadInputError) as caught:
        runtimes_in([str(file)])
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)
