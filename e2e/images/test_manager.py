"""The image of the manager: what is in it, and a training under the manager that it starts."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import tomllib
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from e2e.cluster import Cluster, train_job
from e2e.images.container import USER, Container, give
from e2e.images.distributions import ROOT, installed, named
from e2e.manager import manager
from hack.generate_requirements import MANAGER
from hack.images.base import mirror
from hack.oci.listing import listed
from hack.pins import pins

pytestmark = pytest.mark.timeout(600)  # the image is built on a machine that does other things as well


@pytest.fixture
def image(container: Callable[[str], Container]) -> Container:
    """The image of the manager."""
    return container("manager")


def test_versions(image: Container) -> None:
    """What is installed has the versions of constraints.txt, and all of it is needed by what runs in a cluster."""
    found = installed(image)
    versions = {name: version for name, (version, _) in found.items()}
    pinned = pins((ROOT / "constraints.txt").read_text())
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in MANAGER]
    ours = {canonicalize_name(project["name"]) for project in projects}
    [tree] = {versions.pop(name) for name in ours}
    assert image.run("--version").stdout == f"trainer {tree}\n"
    assert versions == {name: pinned.get(name) for name in versions}
    needed = named([each for name, (_, requires) in found.items() for each in requires if needs(name, each)])
    assert versions.keys() <= needed


def needs(name: str, requirement: str) -> bool:
    """Whether a distribution needs this, and not an extra of it that nobody asks for."""
    return "extra ==" not in requirement or (name == "psycopg" and "binary" in requirement)


def test_what_is_in_it(image: Container) -> None:
    """The manifests of config/, the databases of the history, and samplers that nothing loads before a sweep does."""
    assert int(image.python("from trainer.cli.manifests import runtimes; print(len(runtimes()))")) > 5
    modules = "trainer_dashboard.history.recorder, alembic.command, psycopg"
    assert image.python(f"import {modules}; print(psycopg.pq.__impl__)") == "binary\n"
    starts = "import sys, trainer.manager, trainer_sweeps.component; print('optuna' in sys.modules)"
    assert image.python(f"{starts}; import optuna, cmaes") == "False\n"


def test_what_is_not_in_it(image: Container) -> None:
    """Nothing that installs or compiles, nothing that makes another user of its own, and no file of this machine."""
    assert image.run("-c", "import pip", entrypoint=["python"]).returncode == 1
    programs = [
        path for folder in ("bin", "opt/trainer/bin", "usr/bin", "usr/local/bin") for path in under(image, folder)
    ]
    assert "python3" in {path.name for path in programs}
    forbidden = ("pip", "gcc", "cc", "c++", "g++", "make", "ld", "sudo", "uv")
    assert [path for path in programs if path.name.rstrip("0123456789.") in forbidden] == []
    assert [path for path in image.root.rglob("*") if is_setuid(path)] == []
    assert not (image.root / "etc" / "pip.conf").exists()
    for name in ("hostname", "resolv.conf", "apt/sources.list"):
        assert not is_of_this_machine(image.root / "etc" / name)
    assert [*(image.root / "opt").iterdir()] == [image.root / "opt" / "trainer"]
    assert image.settings.user == f"{USER}:{USER}"


def is_of_this_machine(path: Path) -> bool:
    """Whether a file of an image has what such files of this machine have: its name, its servers, its mirror."""
    servers = re.findall(r"^nameserver (\S+)", Path("/etc/resolv.conf").read_text(), re.MULTILINE)
    words = set(path.read_text().split()) if path.exists() else set()
    return not words.isdisjoint({socket.gethostname(), *servers, *mirror()})


def under(image: Container, folder: str) -> Sequence[Path]:
    """What is in a directory of the image."""
    place = image.root / folder
    return [*place.iterdir()] if place.is_dir() else []


def is_setuid(path: Path) -> bool:
    """Whether a program becomes another user or group."""
    return path.is_file() and not path.is_symlink() and bool(path.stat().st_mode & 0o6000)


def test_byte_code(image: Container) -> None:
    """There is some for every module, without times in it, so that a read-only image starts as fast as any."""
    [packages] = image.root.glob("opt/trainer/lib/python3.*/site-packages")
    modules = [*packages.glob("trainer*/**/*.py")]
    assert modules
    for module in modules:
        assert [*(module.parent / "__pycache__").glob(f"{module.stem}.cpython-*.pyc")], module
    for compiled in packages.rglob("*.pyc"):
        assert compiled.read_bytes()[4:8] == b"\1\0\0\0", f"{compiled} is not an unchecked-hash pyc (PEP 552)"


def test_description(built: Callable[[str], Path], image: Container) -> None:
    """images.json names the archive, and a digest and a version that are those of the image."""
    [said] = listed(built("manager"))
    version = image.settings.labels["org.opencontainers.image.version"]
    assert (said.name, said.reference) == ("trainer-operator", f"trainer-operator:{version}")
    [(platform, digest)] = said.platforms
    assert (platform.partition("/")[0], digest) == ("linux", said.digest)
    inspect = ["skopeo", "inspect", "--format={{.Digest}}", f"oci-archive:{said.archive}"]
    assert subprocess.check_output(inspect, text=True).strip() == said.digest
    size = said.archive.stat().st_size / 1e6
    print(f"{said.archive.name}: {size:.1f} MB")  # noqa: T201 -- the size of a build is one of its results


def test_plugins(image: Container) -> None:
    """What another image puts into /plugins, the command finds, as docs/write-a-plugin.md has it."""
    sample = ROOT / "examples" / "plugin"
    project = tomllib.loads((sample / "pyproject.toml").read_text())["project"]
    [(group, entries)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    with image.derived() as derived:
        place = derived.root / "plugins"
        shutil.copytree(sample / "src", place)
        information = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
        (information / "entry_points.txt").write_text("\n".join(lines))
        shown = derived.run("plugins").stdout
    assert next(iter(entries)) in shown


def test_a_training(image: Container, cluster: Cluster, tmp_path: Path) -> None:
    """The manager of the image takes the place of the other one: it is healthy, trains, and writes no file."""
    cluster.require_local("its manager in a container of this machine")
    replica = manager(cluster, tmp_path, "image")
    given = tmp_path / "given"
    given.mkdir()
    kubeconfig = shutil.copy(cluster.manager_kubeconfig, given / "kubeconfig")
    configuration = shutil.copy(tmp_path / "image.yaml", given / "image.yaml")
    give(given)
    options = ["manager", "--kubeconfig", str(kubeconfig), "--config", str(configuration)]
    replica.command = image.command(*options, reads=[given])
    before = image.files()
    cluster.manager.stop()
    began = time.monotonic()
    try:
        replica.start(ready="started manager")
        address = replica.configuration["health"]["healthProbeBindAddress"]
        with urllib.request.urlopen(f"http://{address}/healthz", timeout=20) as answer:
            assert answer.status == 200
        print(f"the manager is healthy after {time.monotonic() - began:.1f} s")  # noqa: T201 -- a result, as the size is
        cluster.apply(train_job("from-the-image", "print('trained')", nodes=2))
        cluster.wait_for_state("from-the-image", "Complete")
        replica.send(signal.SIGTERM)
        assert replica.wait() == 0
    finally:
        replica.stop()
        cluster.manager.start(ready="started manager")
    assert image.files() == before
    assert json.loads(replica.output().splitlines()[0])
