"""Make a release, or set its version.

Commands:
    python -m hack.release build: everything that is published, into dist (make release).
    python -m hack.release version X: set the version in all files that name it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from hack.release import settings
from hack.release.artefacts import make
from hack.release.packages import NotReproducibleError
from hack.release.versions import set_version


def main(arguments: list[str]) -> int:
    """Run a command, and say in one line what keeps it from being done."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "build":
            make(settings.release(options.repository, options.registry), options.output, images=options.images)
        else:
            for name in set_version(options.version):
                sys.stdout.write(f"{name}\n")
    except (NotReproducibleError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"error: {error}\n{getattr(error, 'stderr', None) or ''}")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.release", description="Make a release, or set its version.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="make everything that is published")
    build.add_argument("--repository", default=settings.REPOSITORY, help="URL on GitHub (default: a placeholder)")
    build.add_argument("--registry", default=settings.REGISTRY, help="of the images (default: a placeholder)")
    build.add_argument("--images", type=Path, help="folder with images.json; without it images have tags, no digests")
    build.add_argument("--output", type=Path, default=settings.ROOT / "dist", help="folder that is made anew")
    commands.add_parser("version", help="set the version everywhere").add_argument("version", help="such as 0.3.0")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
