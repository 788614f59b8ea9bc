"""Build images, or the base that stands in for one of a registry.

python -m hack.images build [NAME ...] --output DIR [--base REFERENCE|debian] [--tag TAG]
python -m hack.images base [--suite SUITE]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hack.images.base import OLDSTABLE, debian
from hack.images.bases import DEBIAN
from hack.images.building import IMAGES, build
from hack.images.errors import ImageError


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say, and print what was made."""
    parser = argparse.ArgumentParser(prog="python -m hack.images", description="Build images without a daemon.")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build images into OCI archives")
    building.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(IMAGES)} (default: all)")
    building.add_argument("--output", type=Path, required=True, help="the directory of the archives and of images.json")
    building.add_argument("--base", help=f"reference of the base, or {DEBIAN} (default: that of the Dockerfile)")
    building.add_argument("--tag", help="default: the version of the tree")
    base = commands.add_parser("base", help="make a root of Debian, and print its directory")
    base.add_argument("--suite", default=OLDSTABLE, help="default: %(default)s")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "base":
            sys.stdout.write(f"{debian(chosen.suite).directory}\n")
            return 0
        for each in build(chosen.names or tuple(IMAGES), output=chosen.output, base=chosen.base, tag=chosen.tag):
            size = each.archive.stat().st_size / 1e6
            sys.stdout.write(f"{each.reference} {each.digest} {size:.1f} MB {each.archive}\n")
    except ImageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
