"""The image of the runtime transformers-distributed: what it installs beside PyTorch, and a training as any user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

from e2e.dockerfile import ROOT, stages
from e2e.image_build import Installation, pins
from e2e.unprivileged import own, run_as_user, skip_unless_root

(IMAGE,) = stages((ROOT / "images" / "transformers" / "Dockerfile").read_text())

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: make nightly installs it"),
]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """What the image installs into a Python that has PyTorch, as that of the base has."""
    made = Installation(tmp_path_factory.mktemp("image"), IMAGE, "builder")
    made.make_base()
    (packages,) = made.root.glob("builder/lib/python3.*/site-packages")
    for base in {each.name: each for each in (*with_requirements("torch"), *with_requirements("numpy"))}.values():
        for top in {path.parts[0] for path in base.files or () if path.parts[0] not in {"..", "__pycache__"}}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(base.locate_file(top))))
    made.build()
    return made


def with_requirements(name: str) -> Iterator[Distribution]:
    """A package that is installed here, and those that it needs."""
    try:
        found = distribution(name)
    except PackageNotFoundError:  # of another platform
        return
    yield found
    for each in found.requires or ():
        if "extra ==" not in each:
            yield from with_requirements(re.split(r"[^\w.-]", each)[0])


def test_versions(installation: Installation) -> None:
    """What is installed has the versions of constraints.txt, and leaves PyTorch as it is."""
    of_base = {"pip", "setuptools"}
    found = {name: version for name, (version, _) in installation.distributions().items() if name not in of_base}
    assert {"transformers", "accelerate", "tokenizers"} <= found.keys()
    pinned = pins()
    assert {name: version.partition("+")[0] for name, version in found.items()} == {
        name: pinned.get(name) for name in found
    }
    torch = next(installation.root.glob("builder/lib/python3.*/site-packages/torch"))
    assert torch.is_symlink()


def test_a_training(installation: Installation, tmp_path: Path) -> None:
    """The example trains under torchrun as a user without a home, who may write to /tmp alone."""
    skip_unless_root()
    example = ROOT / "examples" / "transformers-tiny"
    callbacks = ROOT / "trainer" / "progress"
    code = tmp_path / "code"
    code.mkdir()
    for name, source in {
        "train.py": example / "train.py",
        "report.py": callbacks / "report.py",
        "huggingface_callback.py": callbacks / "callbacks" / "huggingface.py",
    }.items():
        (code / name).write_text(source.read_text())
    environment = {name: installation.at(value) for name, value in IMAGE.environment().items()}
    environment |= {"PATH": f"{installation.root}/builder/bin:/usr/bin:/bin", "TMPDIR": str(own(tmp_path / "tmp"))}
    python = f"{installation.root}/builder/bin/python"  # the base has torchrun, which is this module
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    done = run_as_user([*torchrun, str(code / "train.py")], environment)
    assert done.returncode == 0, done.stderr
    assert '"currentStep":128,"totalSteps":128' in done.stdout
    assert "Permission denied" not in done.stderr
