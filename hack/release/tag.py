"""Whether a commit may be published under a tag; it needs the standard library alone.

python -m hack.release.tag vX
"""

from __future__ import annotations

import sys
from pathlib import Path

from hack.release.notes import dated
from hack.release.settings import ROOT
from hack.release.versions import current


def check(tag: str, root: Path = ROOT) -> None:
    """Check that a tag is the version of the tree, and that the changelog says when it is released.

    Raises:
        ValueError: it is not, or the changelog does not.
    """
    version = current(root)
    if tag != f"v{version}":
        raise ValueError(f"TAG={tag}: the version of the tree is {version}, so the tag would be v{version}")
    if version not in dated((root / "CHANGELOG.md").read_text("utf-8")):
        raise ValueError(f"CHANGELOG.md: there is no section of {version}; write ## [{version}] - YYYY-MM-DD")


def main(arguments: list[str]) -> int:
    """Check the tag that is the only argument."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m hack.release.tag vX\n")
        return 2
    try:
        check(arguments[0])
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
