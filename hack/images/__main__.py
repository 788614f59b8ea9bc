"""Build images.

python -m hack.images [NAME ...] --output DIR [--base REFERENCE|debian] [--tag TAG]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hack.images.bases import DEBIAN
from hack.images.building import IMAGES, build
from hack.images.errors import ImageError
from hack.release.settings import GitError


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say, and print what was made."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.images", description="Build images into OCI archives, without a daemon."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(IMAGES)} (default: all)")
    parser.add_argument("--output", type=Path, required=True, help="the directory of the archives and of images.json")
    parser.add_argument("--base", help=f"reference of the base, or {DEBIAN} (default: that of the Dockerfile)")
    parser.add_argument("--tag", help="default: the version of the tree")
    chosen = parser.parse_args(arguments)
    try:
        for each in build(chosen.names or tuple(IMAGES), output=chosen.output, base=chosen.base, tag=chosen.tag):
            size = each.archive.stat().st_size / 1e6
            sys.stdout.write(f"{each.reference} {each.digest} {size:.1f} MB {each.archive}\n")
    except (GitError, ImageError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
