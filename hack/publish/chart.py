"""The packaged chart as registries keep it, in an archive like those of images, so that its digest is known before.

    python -m hack.publish.chart FILE FOLDER

`helm push` stores the same layer under a manifest with the time of the push, so that each push has another digest.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from hack.oci.archive import archive_of
from hack.oci.listing import Image, write_list
from hack.publish.programs import PublishError

FOLDER: Final = "charts"
"""The folder of the registry that has the chart, by whose own name an image could be meant."""
_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def main(arguments: Sequence[str]) -> int:
    """Write the archive of a chart and its list into a folder."""
    if len(arguments) != 2:
        sys.stderr.write(__doc__ or "")
        return 2
    chart, folder = (Path(each) for each in arguments)
    try:
        image = pack(chart, folder)
    except PublishError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    write_list([image], folder)
    sys.stdout.write(f"{image.reference} {image.digest}\n")
    return 0


def pack(chart: Path, folder: Path) -> Image:
    """Put a packaged chart into an archive in a folder, which is made.

    Raises:
        PublishError: the file is no packaged chart.
    """
    metadata = _metadata(chart)
    folder.mkdir(parents=True, exist_ok=True)
    name, version = metadata["name"], metadata["version"]
    archive = folder / f"{name}-{version}.oci.tar"
    config = json.dumps(metadata, sort_keys=True).encode()
    digest = archive_of(archive, (_CONFIG, config), [(_CONTENT, chart.read_bytes())])
    return Image(f"{FOLDER}/{name}", f"{FOLDER}/{name}:{version}", digest, archive)


def _metadata(chart: Path) -> dict[str, Any]:
    try:
        with tarfile.open(chart) as opened:
            (path,) = (name for name in opened.getnames() if name.count("/") == 1 and name.endswith("/Chart.yaml"))
            stream = opened.extractfile(path)
            assert stream is not None, path
            metadata: dict[str, Any] = yaml.safe_load(stream)
            return metadata
    except (OSError, tarfile.TarError, ValueError) as error:
        raise PublishError(f"{chart} is no packaged chart: make release") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
