"""Publish what has been built. Nothing here builds, and each step can be repeated.

    python -m hack.publish join FOLDER             images of several platforms become one image each
    python -m hack.publish login                   store credentials of the registry
    python -m hack.publish push LIST FOLDER        push what images.json of the folder lists, and add it to LIST
    python -m hack.publish sign LIST DIST          sign what is in the registry, and attest what it contains
    python -m hack.publish subjects LIST           print what a provenance speaks of
    python -m hack.publish sums DIST               sign the sums of all files
    python -m hack.publish page TAG DIST           make the release page

The variable REGISTRY says where images and charts go; names in registries have small letters. Exit code: 0, or 1 with a
sentence on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.oci.archive import ArchiveError
from hack.oci.listing import listed
from hack.publish import page, signatures
from hack.publish.platforms import join
from hack.publish.programs import PublishError
from hack.publish.registry import Registry, authentication, record, recorded


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say."""
    try:
        match arguments:
            case ["join", folder]:
                for image in join(Path(folder)):
                    platforms = " ".join(platform for platform, _ in image.platforms)
                    sys.stdout.write(f"{image.reference} {image.digest} {platforms}\n")
            case ["login"]:
                _registry().log_in(authentication())
            case ["push", published, folder]:
                registry = _registry()
                for image in listed(Path(folder)):
                    record([registry.push(image)], Path(published))
            case ["sign", published, dist]:
                signatures.sign(recorded(Path(published)), Path(dist))
            case ["subjects", published]:
                sys.stdout.write(signatures.subjects(recorded(Path(published))))
            case ["sums", dist]:
                signatures.sign_sums(Path(dist))
            case ["page", tag, dist]:
                page.publish(tag, Path(dist))
            case _:
                sys.stderr.write(__doc__ or "")
                return 2
    except (ArchiveError, PublishError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _registry() -> Registry:
    return Registry(os.environ.get("REGISTRY", "").lower())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
