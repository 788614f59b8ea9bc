"""The image of the runtime transformers-distributed, on a base with PyTorch: a training as any user."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.images.container import Container, give
from e2e.images.distributions import ROOT, installed
from hack.pins import pins

pytestmark = pytest.mark.timeout(1800)  # PyTorch is downloaded and unpacked


@pytest.fixture
def image(container: Callable[[str], Container]) -> Container:
    """The image, which says nothing about its user."""
    return container("transformers")


def test_versions(image: Container) -> None:
    """What is installed has the versions of constraints.txt, and leaves PyTorch as it is."""
    found = {name: version.partition("+")[0] for name, (version, _) in installed(image, "python3").items()}
    assert {"transformers", "accelerate", "tokenizers", "torch"} <= found.keys()
    pinned = pins((ROOT / "constraints.txt").read_text())
    of_base = {"pip", "setuptools", "wheel"}
    assert {name: version for name, version in found.items() if name not in of_base} == {
        name: pinned.get(name) for name in found if name not in of_base
    }


def test_a_training(image: Container, tmp_path: Path) -> None:
    """The example trains under torchrun as a user without a home, who may write to /tmp alone."""
    example = ROOT / "examples" / "transformers-tiny"
    callbacks = ROOT / "trainer" / "progress"
    code = tmp_path / "code"
    code.mkdir()
    for name, source in {
        "train.py": example / "train.py",
        "report.py": callbacks / "report.py",
        "huggingface_callback.py": callbacks / "callbacks" / "huggingface.py",
    }.items():
        shutil.copy(source, code / name)
    give(code)
    torchrun = ["python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    done = image.run(str(code / "train.py"), entrypoint=torchrun, reads=[code], timeout=900)
    assert done.returncode == 0, done.stderr
    assert '"currentStep":128,"totalSteps":128' in done.stdout
    assert "Permission denied" not in done.stderr
