"""A packaged chart as registries keep it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from hack.oci.archive import opened
from hack.oci.listing import listed
from hack.publish.chart import main


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A packaged chart with a chart that it depends on."""
    source = tmp_path / "source"
    for folder, name in (("own", "own"), ("own/charts/other", "other")):
        (source / folder).mkdir(parents=True)
        (source / folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 1.2.3\n")
    path = tmp_path / "own-1.2.3.tgz"
    with tarfile.open(path, "w:gz") as opened:
        opened.add(source / "own", "own")
    return path


def test_archive(chart: Path, tmp_path: Path) -> None:
    """The manifest has the chart as its only layer, and what Chart.yaml says as its configuration."""
    folder = tmp_path / "packed"
    assert main([str(chart), str(folder)]) == 0
    (packed,) = listed(folder)
    assert packed.reference == "charts/own:1.2.3"
    with opened(packed.archive) as archive:
        ((digest, manifest),) = archive.manifests()
        assert digest == packed.digest
        (layer,) = manifest["layers"]
        assert archive.blob(layer["digest"]).read() == chart.read_bytes()
        config = archive.document(manifest["config"]["digest"])
    assert config == {"apiVersion": "v2", "name": "own", "version": "1.2.3"}


@pytest.mark.parametrize("content", [None, b"no archive"], ids=["missing", "other"])
def test_no_chart(content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the file, and the target that makes it."""
    path = tmp_path / "own-1.2.3.tgz"
    if content:
        path.write_bytes(content)
    assert main([str(path), str(tmp_path)]) == 1
    assert f"{path} is no packaged chart: make release" in capsys.readouterr().err
