"""The image of the initializers: its build stage in a directory of this machine, and what it starts, as its user."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from e2e.dockerfile import ROOT, stages
from e2e.image_build import Installation, normalised, pins
from e2e.unprivileged import USER, own, run_as_user, skip_unless_root
from packages.initializers.tests.servers import RangeServer

BUILD, IMAGE, *VARIANTS, DEFAULT = stages((ROOT / "images" / "initializer" / "Dockerfile").read_text())

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The build stage, done once."""
    made = Installation(tmp_path_factory.mktemp("image"), BUILD, "opt/initializer")
    made.make_base()
    made.build()
    return made


def run(installation: Installation, stage: str, directory: Path, **environ: str) -> tuple[int, str, str]:
    """Exit code, output and termination message of an image, with the variables of the TrainJob."""
    (variant,) = (each for each in (*VARIANTS, DEFAULT) if each.name == stage)
    command = [*json.loads(IMAGE.all("ENTRYPOINT")[0]), *(json.loads(text)[0] for text in variant.all("CMD"))]
    command[0] = f"{installation.root}/opt/initializer/bin/{command[0]}"
    message = own(directory / f"log-{stage}") / "termination-log"
    environment = {name: installation.at(value) for name, value in IMAGE.environment().items()}
    environment |= {"TERMINATION_MESSAGE_PATH": str(message), **environ}
    done = run_as_user(command, environment)
    return done.returncode, done.stdout + done.stderr, message.read_text() if message.exists() else ""


def test_versions(installation: Installation) -> None:
    """What is installed has the versions of constraints.txt, and is what the extra names and that needs."""
    found = installation.distributions()
    installed = {name: version for name, (version, _) in found.items()}
    pinned = pins()
    assert installed == {name: pinned.get(name) for name in installed}
    project = tomllib.loads((ROOT / "packages" / "initializers" / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *(each for _, requires in found.values() for each in requires if "extra ==" not in each),
    ]
    assert installed.keys() <= {normalised(re.split(r"[^\w.-]", each)[0]) for each in needed}


def test_source(installation: Installation) -> None:
    """The initializers and the reporter are in it, compiled, and nothing else of the operator."""
    source = installation.root / "opt" / "initializer" / "source"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    assert {name for name in modules if not name.startswith("trainer_initializers/")} == {
        "trainer/__init__.py",
        "trainer/progress/__init__.py",
        "trainer/progress/report.py",
    }
    for name in modules:
        (compiled,) = ((source / name).parent / "__pycache__").glob(f"{(source / name).stem}.cpython-*.pyc")
        assert compiled.read_bytes()[4:8] == b"\1\0\0\0", f"{compiled} is not an unchecked-hash pyc (PEP 552)"


def test_each_image_runs(installation: Installation, tmp_path: Path) -> None:
    """As its user, from /, without writing to the image: data and model come, and the result goes."""
    skip_unless_root()
    before = installation.files()
    volume = own(tmp_path / "volume")
    with RangeServer() as server:
        server.files["/set/a.json"] = b'{"a": 1}'
        for stage in ("dataset-initializer", "model-initializer"):
            environ = {"STORAGE_URI": f"{server.url}/set/a.json", "TRANSFER_PATH": f"{volume}/{stage}"}
            assert run(installation, stage, tmp_path, **environ)[::2] == (0, "")
            assert (volume / stage / "a.json").read_bytes() == b'{"a": 1}'
            assert (volume / stage / "a.json").stat().st_uid == USER
    environ = {"STORAGE_URI": f"file://{volume}/exported", "TRANSFER_PATH": f"{volume}/model-initializer"}
    assert run(installation, "model-exporter", tmp_path, **environ)[::2] == (0, "")
    assert (volume / "exported" / "a.json").read_bytes() == b'{"a": 1}'
    assert installation.files() == before


@pytest.mark.parametrize("uri", ["s3://bucket/set", "hf://user/name", "http://127.0.0.1:9/a"])
def test_failures(installation: Installation, tmp_path: Path, uri: str) -> None:
    """The libraries of each provider are there, and a failure is one line in the termination message."""
    skip_unless_root()
    nowhere = {"ENDPOINT": "http://127.0.0.1:9", "HF_ENDPOINT": "http://127.0.0.1:9", "TRANSFER_RETRY_SECONDS": "0"}
    keys = {"ACCESS_KEY_ID": "AKIATEST", "SECRET_ACCESS_KEY": "very-secret"}
    volume = own(tmp_path / "volume")
    environ = {"STORAGE_URI": uri, "TRANSFER_PATH": f"{volume}/data", **nowhere, **keys}
    code, output, said = run(installation, "dataset-initializer", tmp_path, **environ)
    assert (code, len(said.splitlines())) == (1, 1), output
    assert said.startswith("dataset: the source does not answer: ")
    assert "Traceback" not in output


def test_volume_of_root(installation: Installation, tmp_path: Path) -> None:
    """A volume that the user cannot write to says so, and what to do."""
    skip_unless_root()
    (tmp_path / "volume").mkdir()
    with RangeServer() as server:
        server.files["/a"] = b"a"
        environ = {"STORAGE_URI": f"{server.url}/a", "TRANSFER_PATH": f"{tmp_path}/volume/data"}
        code, _, said = run(installation, "dataset-initializer", tmp_path, **environ)
    assert code == 2
    assert "securityContext.fsGroup" in said


def test_without_a_command(installation: Installation, tmp_path: Path) -> None:
    """The image without a step of its own says which there are."""
    skip_unless_root()
    code, output, _ = run(installation, "", tmp_path)
    assert code == 2
    assert "dataset,export,model" in output.replace(" ", "").replace("'", "")


def test_who_runs_it() -> None:
    """A number that is not root, after which nothing becomes root again."""
    assert IMAGE.all("USER") == [f"{USER}:{USER}"]
    names = [each.name for each in IMAGE.instructions]
    assert {"RUN", "COPY"}.isdisjoint(names[names.index("USER") :])
    assert [(each.name, each.all("CMD")) for each in VARIANTS] == [
        ("dataset-initializer", ['["dataset"]']),
        ("model-initializer", ['["model"]']),
        ("model-exporter", ['["export"]']),
    ]
    assert all({each.name for each in variant.instructions} <= {"CMD"} for variant in (*VARIANTS, DEFAULT))
