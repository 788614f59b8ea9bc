"""`trainer.train` and `trainer.submit`; what they return is in test_submitted_job."""

from __future__ import annotations

import asyncio
import base64
import importlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import trainer
from trainer.api.checkpoints import CHECKPOINTS
from trainer.api.progress import STALL_SECONDS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.errors import BadInputError
from trainer.cli.manifests import runtimes
from trainer.kube.resource import CONFIG_MAPS
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
        secret_env={"T": "hub:token"}, labels={"team": "vision"}, name="demo", namespace="team", stall_after="10m",
        checkpoints="",
        max_restarts=2,
    )  # fmt: skip

    assert (job.name, job.namespace) == ("demo", "team")
    (created,) = served.objects(TRAIN_JOBS)
    assert created["metadata"]["labels"] == {"team": "vision"}
    assert created["metadata"]["annotations"] == {STALL_SECONDS: "600", CHECKPOINTS: ""}
    assert created["spec"]["maxRestarts"] == 2
    settings = created["spec"]["trainer"]
    assert (settings["numNodes"], settings["resourcesPerNode"]["limits"]) == (2, {"cpu": "4"})
    assert settings["env"] == [
        {"name": "A", "value": "1=2"},
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    ]
    assert (settings["command"][-1], settings["args"]) == ("train.py", ["--epochs", "3"])
    assert capsys.readouterr() == ("", "")


def test_in_a_running_loop() -> None:
    """A notebook, which runs an event loop, can call it."""

    async def cell() -> trainer.SubmittedJob:
        return trainer.submit("train.py", name="demo", suspend=True)

    assert asyncio.run(cell()).name == "demo"


def learn(epochs: int, rate: float = 0.1) -> None:
    """A training."""
    import torch
    from report import report  # type: ignore[import-not-found]  # it travels along

    report(step=epochs, loss=torch.tensor(rate))


def test_train(served: FakeClient) -> None:
    """A function travels as a script that calls it, with its packages and the reporter; its imports say the runtime."""
    job = trainer.train(
        learn, {"epochs": 3}, packages=["einops>=0.8"], nodes=2, gpus=1, env={"A": "1"}, stall_after="0s",
        checkpoints="data",
    )  # fmt: skip

    (created,), (code,) = served.objects(TRAIN_JOBS), served.objects(CONFIG_MAPS)
    assert job.name == created["metadata"]["name"]
    assert job.name.startswith("learn-")
    assert created["metadata"]["annotations"] == {STALL_SECONDS: "0", CHECKPOINTS: "data"}
    assert created["spec"]["runtimeRef"]["name"] == "torch-distributed"
    settings = created["spec"]["trainer"]
    assert (settings["numNodes"], settings["resourcesPerNode"]["limits"]) == (2, {"nvidia.com/gpu": "1"})
    assert settings["command"][-2:] == ["torchrun", "learn_function.py"]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(code["binaryData"]["code.tar.gz"]))) as archive:
        files = {name: archive.extractfile(name).read().decode() for name in archive.getnames()}  # type: ignore[union-attr]
    assert sorted(files) == ["learn_function.py", "report.py", "requirements.txt"]
    assert files["requirements.txt"] == "einops>=0.8\n"
    assert files["learn_function.py"].endswith('if __name__ == "__main__":\n    learn(epochs=3)\n')


def test_module_beside(served: FakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that the function imports from beside its file travels, and requirements of the folder do not."""
    (tmp_path / "model.py").write_text("")
    (tmp_path / "requirements.txt").write_text("scipy")
    (tmp_path / "steps.py").write_text("def fit():\n    import model\n")
    monkeypatch.syspath_prepend(tmp_path)
    steps = importlib.import_module("steps")

    trainer.train(steps.fit, name="demo")

    (code,) = served.objects(CONFIG_MAPS)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(code["binaryData"]["code.tar.gz"]))) as archive:
        assert archive.getnames() == ["model.py", "fit_function.py"]


@pytest.mark.parametrize(
    ("packages", "problem"),
    [
        pytest.param("numpy", r"packages: must be a list, such as \['numpy'\]", id="one text"),
        pytest.param(["-r more.txt"], "packages: '-r more.txt': must be one requirement", id="file"),
        pytest.param(["numpy\nscipy"], "must be one requirement", id="two lines"),
    ],
)
def test_bad_packages(packages: list[str], problem: str) -> None:
    """Packages are lines of a requirements.txt, and no files."""
    with pytest.raises(BadInputError, match=problem):
        trainer.train(learn, {"epochs": 1}, packages=packages)


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
