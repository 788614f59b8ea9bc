"""`trainer.submit`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import trainer
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.errors import BadInputError
from trainer.cli.manifests import runtimes
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: FakeClient) -> None:
    """A script, and a cluster with the runtimes that we ship."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch")
    for runtime in runtimes():
        served.add(runtime)


def test_submit(served: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments are those of the command, and nothing is printed."""
    job = trainer.submit(
        Path("train.py"), "--epochs", "3", nodes=2, resources={"cpu": "4"}, env={"A": "1=2"},
        secret_env={"T": "hub:token"}, name="demo", namespace="team",
    )  # fmt: skip

    assert job == trainer.SubmittedJob("demo", "team")
    (created,) = served.objects(TRAIN_JOBS)
    settings = created["spec"]["trainer"]
    assert (settings["numNodes"], settings["resourcesPerNode"]["limits"]) == (2, {"cpu": "4"})
    assert settings["env"] == [
        {"name": "A", "value": "1=2"},
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    ]
    assert settings["command"][-3:] == ["train.py", "--epochs", "3"]
    assert capsys.readouterr() == ("", "")


def test_in_a_running_loop() -> None:
    """A notebook, which runs an event loop, can call it."""

    async def cell() -> trainer.SubmittedJob:
        return trainer.submit("train.py", name="demo", suspend=True)

    assert asyncio.run(cell()).name == "demo"


def test_bad_input() -> None:
    """A mistake is an exception with the remedy."""
    with pytest.raises(BadInputError, match=r"there is no script missing\.py"):
        trainer.submit("missing.py")


def test_import_is_light() -> None:
    """Controllers that import the package load none of it."""
    code = (
        "import sys, trainer; assert not [name for name in sys.modules if name.startswith('trainer.')]; trainer.submit"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_other_attribute() -> None:
    """Anything else is the usual error."""
    with pytest.raises(AttributeError, match="has no attribute 'submitt'"):
        trainer.submitt  # noqa: B018
