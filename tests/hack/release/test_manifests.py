"""Manifests and chart of a release, with its images."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import yaml

import trainer
from hack.oci.listing import Image
from hack.release import chart, manifests
from hack.release.images import INITIALIZER, MANAGER, NAMES
from hack.release.settings import ROOT, Release

RELEASE = Release(trainer.__version__, "c" * 40, 1_700_000_000, registry="ghcr.io/some/one")
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
IMAGES = (Image(MANAGER, f"{MANAGER}:{RELEASE.version}", DIGEST, Path("none")),)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests and the chart of this checkout, in a folder that can be written to."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("config", "charts"):
        (tree / name).symlink_to(ROOT / name)
    return tree


def test_manifests(tree: Path, tmp_path: Path) -> None:
    """All images come from the registry, by digest where that is known; there is a file for each version."""
    written = manifests.write(RELEASE, tree, IMAGES, tmp_path)

    assert {"install-v2alpha1.yaml", "install-v1alpha1.yaml", "dashboard.yaml"} <= {path.name for path in written}
    manager = f"ghcr.io/some/one/trainer-operator:{trainer.__version__}@{DIGEST}"
    for path in written:
        objects = [obj for obj in yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader) if obj]
        pods = [obj["spec"]["template"]["spec"] for obj in objects if obj["kind"] in {"Deployment", "Job"}]
        containers = [container for pod in pods for container in pod["containers"]]
        assert {container["image"] for container in containers} <= {manager}
        if path.name.startswith("install-"):
            (variables,) = (container["env"] for container in containers if container["name"] == "install")
            others = {f"ghcr.io/some/one/{name}:{trainer.__version__}" for name in NAMES if name != MANAGER}
            assert {each["value"] for each in variables} == others


def test_chart(tree: Path, tmp_path: Path) -> None:
    """The same commit gives the same archive, whose values name registry and digest."""
    archives = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        archives.append(chart.package(RELEASE, tree, IMAGES, tmp_path / name))
    assert archives[0].name == f"kubeflow-trainer-{trainer.__version__}.tgz"
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as archive:
        assert archive.getnames()[0] == "kubeflow-trainer/Chart.yaml"
        stream = archive.extractfile("kubeflow-trainer/values.yaml")
        assert stream is not None
        values = yaml.safe_load(stream.read())
    assert values["image"]["registry"] == "ghcr.io/some/one"
    assert values["image"]["digest"] == DIGEST
    initializer = values["runtimes"]["initializer"]["image"]
    assert initializer == {"registry": "ghcr.io/some/one", "repository": INITIALIZER, "tag": "", "digest": ""}


def test_chart_of_another_version(tree: Path, tmp_path: Path) -> None:
    """A chart whose version is not that of the release is refused."""
    with pytest.raises(ValueError, match=r"Chart\.yaml: version is .*, that of the release is 99\.0\.0"):
        chart.package(Release("99.0.0", "", 0), tree, IMAGES, tmp_path)
