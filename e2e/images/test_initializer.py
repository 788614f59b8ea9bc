"""The image of the initializers and of the exporter, and what it starts, as its user on a read-only root."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.images.container import USER, Container, give
from e2e.images.distributions import ROOT, installed, named
from hack.pins import pins
from packages.initializers.tests.servers import RangeServer

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def image(container: Callable[[str], Container]) -> Container:
    """The image of the initializers."""
    return container("initializer")


def run(image: Container, step: str, volume: Path, **environment: str) -> tuple[int, str, str]:
    """Exit code, output and termination message of a step, with the variables of the TrainJob."""
    message = volume / f"termination-log-{step}"
    variables = {"TERMINATION_MESSAGE_PATH": str(message), **environment}
    done = image.run(*([step] if step else []), environment=variables, writes=[volume])
    return done.returncode, done.stdout + done.stderr, message.read_text() if message.exists() else ""


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A directory of the user of the image."""
    made = tmp_path / "volume"
    made.mkdir()
    give(made)
    return made


def test_versions(image: Container) -> None:
    """What is installed has the versions of constraints.txt, and is what the distribution names and that needs."""
    found = installed(image)
    versions = {name: version for name, (version, _) in found.items()}
    pinned = pins((ROOT / "constraints.txt").read_text())
    assert versions == {name: pinned.get(name) for name in versions}
    project = tomllib.loads((ROOT / "packages" / "initializers" / "pyproject.toml").read_text())["project"]
    brought = [each for _, requires in found.values() for each in requires if "extra ==" not in each]
    assert versions.keys() <= named([*project["dependencies"], *brought])


def test_source(image: Container) -> None:
    """The initializers and the reporter are in it, compiled, and nothing else of the operator."""
    source = image.root / "opt" / "initializer" / "source"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    assert {name for name in modules if not name.startswith("trainer_initializers/")} == {
        "trainer/__init__.py",
        "trainer/progress/__init__.py",
        "trainer/progress/report.py",
    }
    for name in modules:
        [compiled] = ((source / name).parent / "__pycache__").glob(f"{(source / name).stem}.cpython-*.pyc")
        assert compiled.read_bytes()[4:8] == b"\1\0\0\0", f"{compiled} is not an unchecked-hash pyc (PEP 552)"


def test_each_step(image: Container, volume: Path) -> None:
    """From /, without writing to the image: data and model come, and the result goes."""
    before = image.files()
    with RangeServer() as server:
        server.files["/set/a.json"] = b'{"a": 1}'
        for step in ("dataset", "model"):
            environment = {"STORAGE_URI": f"{server.url}/set/a.json", "TRANSFER_PATH": f"{volume}/{step}"}
            assert run(image, step, volume, **environment)[::2] == (0, "")
            assert (volume / step / "a.json").read_bytes() == b'{"a": 1}'
            assert (volume / step / "a.json").stat().st_uid == USER
    environment = {"STORAGE_URI": f"file://{volume}/exported", "TRANSFER_PATH": f"{volume}/model"}
    assert run(image, "export", volume, **environment)[::2] == (0, "")
    assert (volume / "exported" / "a.json").read_bytes() == b'{"a": 1}'
    assert image.files() == before


@pytest.mark.parametrize("uri", ["s3://bucket/set", "hf://user/name", "http://127.0.0.1:9/a"])
def test_failures(image: Container, volume: Path, uri: str) -> None:
    """The libraries of each provider are there, and a failure is one line in the termination message."""
    nowhere = {"ENDPOINT": "http://127.0.0.1:9", "HF_ENDPOINT": "http://127.0.0.1:9", "TRANSFER_RETRY_SECONDS": "0"}
    keys = {"ACCESS_KEY_ID": "AKIATEST", "SECRET_ACCESS_KEY": "very-secret"}
    environment = {"STORAGE_URI": uri, "TRANSFER_PATH": f"{volume}/data", **nowhere, **keys}
    code, output, said = run(image, "dataset", volume, **environment)
    assert (code, len(said.splitlines())) == (1, 1), output
    assert said.startswith("dataset: the source does not answer: ")
    assert "Traceback" not in output


def test_volume_of_root(image: Container, volume: Path, tmp_path: Path) -> None:
    """A volume that the user cannot write to says so, and what to do."""
    of_root = tmp_path / "of-root"
    of_root.mkdir()
    with RangeServer() as server:
        server.files["/a"] = b"a"
        environment = {"STORAGE_URI": f"{server.url}/a", "TRANSFER_PATH": f"{of_root}/data"}
        done = image.run("dataset", environment=environment, writes=[of_root])
    assert done.returncode == 2
    assert "securityContext.fsGroup" in done.stdout + done.stderr


def test_without_a_command(image: Container, volume: Path) -> None:
    """Its user is that of the manifests; it has no step built in, and says which there are."""
    assert image.settings.user == f"{USER}:{USER}"
    assert image.settings.command == ()
    code, output, _ = run(image, "", volume)
    assert code == 2
    assert "dataset,export,model" in output.replace(" ", "").replace("'", "")
