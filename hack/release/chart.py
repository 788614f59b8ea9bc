"""The Helm chart, with the images of the release, packaged so that the same commit gives the same file."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

import yaml

from hack.oci.listing import Image
from hack.release.images import NAMES
from hack.release.settings import Release


def package(release: Release, tree: Path, images: Iterable[Image], output: Path) -> Path:
    """Package the chart of a tree as `helm package` does, with the images of the release as default values.

    Raises:
        ValueError: the chart has another version than the release, or values.yaml has no place for an image.
    """
    chart = tree / "charts" / "kubeflow-trainer"
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))
    if metadata["version"] != release.version:
        raise ValueError(f"Chart.yaml: version is {metadata['version']}, that of the release is {release.version}")
    values = with_images((chart / "values.yaml").read_text("utf-8"), release, images)
    target = output / f"{metadata['name']}-{release.version}.tgz"
    files = sorted(path for path in chart.rglob("*") if path.is_file() and not path.name.startswith("."))
    # Helm itself begins with Chart.yaml: whoever reads the archive as a stream knows then what it is.
    files.sort(key=lambda path: path.name != "Chart.yaml")
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=release.epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in files:
            text = values.encode() if path.name == "values.yaml" else path.read_bytes()
            member = tarfile.TarInfo(f"{metadata['name']}/{path.relative_to(chart).as_posix()}")
            member.size, member.mtime, member.mode = len(text), release.epoch, 0o644
            archive.addfile(member, io.BytesIO(text))
    return target


def with_images(values: str, release: Release, images: Iterable[Image]) -> str:
    """Give values.yaml with the registry of the release's images, and with the digests that are known.

    Raises:
        ValueError: values.yaml has no place for an image.
    """
    digests = {image.name: image.digest for image in images}
    for name in NAMES:
        place = re.compile(rf'registry: ""(?P<between>,?\s+repository: {name}\b[^{{}}]*?)digest: ""')
        filled = rf'registry: "{release.registry}"\g<between>digest: "{digests.get(name, "")}"'
        values, count = place.subn(filled, values)
        if count != 1:
            raise ValueError(f"values.yaml: there are {count} images with repository {name} and an empty registry")
    return values
