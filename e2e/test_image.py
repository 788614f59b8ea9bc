"""The image of the manager: its build stage in a directory of this machine, and, where Docker is, the image itself."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from e2e.cluster import Cluster
from e2e.dockerfile import ROOT, Stage, stages
from e2e.image_build import Installation, normalised, pins
from e2e.manager import manager, other_ports
from e2e.waiting import until

BUILD, FINAL = stages((ROOT / "Dockerfile").read_text())
FOLDERS = (".", "packages/dashboard", "packages/sweeps", "packages/v1_jobs")
"""The distributions that the image has."""
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The build stage, done once."""
    made = Installation(tmp_path_factory.mktemp("image"), BUILD, "opt/trainer")
    made.make_base()
    made.build()
    return made


def test_versions(installation: Installation) -> None:
    """What is installed has the versions of constraints.txt, and all of it is needed by what runs in a cluster."""
    found = installation.distributions()
    installed = {name: version for name, (version, _) in found.items()}
    pinned = pins()
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in FOLDERS]
    version = installation.python("import trainer; print(trainer.__version__)").strip()
    for project in projects:
        assert found.pop(normalised(project["name"]))[0] == installed.pop(normalised(project["name"])) == version
    assert installed == {name: pinned.get(name) for name in installed}

    def named(requirements: list[str]) -> set[str]:
        return {normalised(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}

    ours = {normalised(project["name"]) for project in projects}
    wanted = {name for project in projects for name in named(project["dependencies"])} - ours
    extras = {name for extra in projects[0]["optional-dependencies"].values() for name in named(extra)} - ours
    brought = named([each for _, requires in found.values() for each in requires if "extra ==" not in each])
    assert wanted <= installed.keys()
    assert installed.keys() & ((extras - wanted - brought) | {"pip", "hatchling", "wheel"}) == set()


def test_manifests_are_in_it(installation: Installation) -> None:
    """The command finds the CRDs and runtimes of config/ without the repository."""
    found = installation.python("from trainer.cli.manifests import runtimes; print(len(runtimes()))")
    assert int(found) > 5


def test_history_is_in_it(installation: Installation) -> None:
    """What config/history runs finds its databases."""
    modules = "trainer_dashboard.history.recorder, alembic.command, psycopg"
    assert installation.python(f"import {modules}; print(psycopg.pq.__impl__)").strip() == "binary"


def test_samplers_are_in_it(installation: Installation) -> None:
    """What the manager chooses parameters with can be imported, and nothing of it is before a sweep needs it."""
    starts = "import sys, trainer.manager, trainer_sweeps.component; print('optuna' in sys.modules)"
    assert installation.python(f"{starts}; import optuna, cmaes").strip() == "False"


def test_byte_code(installation: Installation) -> None:
    """There is some for every module, without times in it, so that a read-only image starts as fast as any."""
    modules = list((installation.root / "opt/trainer").glob("lib/python3.*/site-packages/trainer/**/*.py"))
    assert modules
    for module in modules:
        [compiled] = (module.parent / "__pycache__").glob(f"{module.stem}.cpython-*.pyc")
        assert compiled.read_bytes()[4:8] == b"\1\0\0\0", f"{compiled} is not an unchecked-hash pyc (PEP 552)"


def test_the_wheels_are_reproducible(installation: Installation) -> None:
    """Two builds of the same source are the same, byte for byte."""
    [build] = [text for text in BUILD.all("RUN") if "pip wheel" in text]
    again = installation.root / "again"
    installation.run(build.replace("/wheels", str(again)))
    first, second = (
        {file.name: sha256(file.read_bytes()).digest() for file in directory.iterdir()}
        for directory in (installation.root / "wheels", again)
    )
    assert len(first) == len(FOLDERS)
    assert first == second


def test_the_manager_starts(installation: Installation, cluster: Cluster, tmp_path: Path) -> None:
    """With the environment of the image and nothing else, from /, writing nothing; its health check then passes."""
    if not cluster.configuration:
        pytest.skip("the manager of this cluster is a Deployment, and has been started already")
    replica = manager(cluster, tmp_path, "image", leaderElection={"leaderElect": True}, **other_ports())
    # The places of the image are below a directory of its own here, and Python of this machine is found through them.
    environment = {name: installation.at(value) for name, value in FINAL.environment().items()}
    environment |= {"HEALTH_ADDRESS": replica.configuration["health"]["healthProbeBindAddress"]}
    bare = ["env", "--ignore-environment", "--chdir=/", *(f"{name}={value}" for name, value in environment.items())]
    assert FINAL.all("ENTRYPOINT") == ['["trainer"]']
    replica.command = [*bare, "trainer", *replica.command[1:]]
    before = installation.files()
    replica.start(ready="started manager")
    try:

        def is_healthy() -> bool:
            check = subprocess.run([*bare, *FINAL.health_check()], capture_output=True, timeout=20, check=False)
            return check.returncode == 0

        until(is_healthy, "the health check of the image passes")
        replica.send(signal.SIGTERM)
        assert replica.wait() == 0
        assert not is_healthy()
    finally:
        replica.stop()
    assert installation.files() == before


def test_plugins(installation: Installation, tmp_path: Path) -> None:
    """What another image puts into /plugins, the command finds, as docs/write-a-plugin.md has it."""
    sample, place = ROOT / "examples" / "plugin", installation.root / "plugins"
    project = tomllib.loads((sample / "pyproject.toml").read_text())["project"]
    shutil.copytree(sample / "src", place)
    information = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
    [(group, entries)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (information / "entry_points.txt").write_text("\n".join(lines))
    try:
        environment = {name: installation.at(value) for name, value in FINAL.environment().items()}
        command = [f"{installation.root}/opt/trainer/bin/trainer", "plugins"]
        result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    finally:
        shutil.rmtree(place)
    assert next(iter(entries)) in result.stdout


def test_who_runs_it() -> None:
    """A number that is not root, in the last stage, after which nothing becomes root again."""
    assert FINAL.all("USER") == ["65532:65532"]
    names = [each.name for each in FINAL.instructions]
    assert {"RUN", "COPY"}.isdisjoint(names[names.index("USER") :])


def docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run docker to its end."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=280, check=check)


def has_docker() -> bool:
    """Whether there is a daemon."""
    return shutil.which("docker") is not None and docker("info", check=False).returncode == 0


@pytest.mark.skipif(not has_docker(), reason="there is no Docker daemon")
def test_the_image() -> None:
    """It builds, and runs with a read-only root as any user, without pip and without anything that is setuid."""
    docker("build", "--tag", "trainer-operator:e2e", str(ROOT))
    try:
        run = ["run", "--rm", "--read-only", "--user", "12345:12345", "--cap-drop", "ALL", "--network", "none"]
        assert docker(*run, "trainer-operator:e2e", "--version").stdout.startswith("trainer ")
        python = [*run, "--entrypoint", "python", "trainer-operator:e2e", "-c"]
        assert docker(*python, "import pip", check=False).returncode == 1
        assert docker(*python, "import trainer.manager").returncode == 0
        find = [*run, "--entrypoint", "find", "trainer-operator:e2e", "/", "-xdev", "-perm", "/6000", "-type", "f"]
        assert docker(*find, check=False).stdout == ""
    finally:
        docker("image", "rm", "--force", "trainer-operator:e2e", check=False)


def test_stages() -> None:
    """The builder stays behind."""
    assert (BUILD.name, FINAL.name) == ("build", "")
    assert isinstance(FINAL, Stage)
    assert FINAL.all("COPY") == ["--from=build /opt/trainer /opt/trainer"]
