"""Write the requirements of the images, each with its version and the hashes of its files.

    python -m hack.generate_requirements

Direct requirements come from pyproject.toml of what an image has, versions from constraints.txt, and hashes from the
index of packages that uv is configured with. They are for Linux on amd64 and arm64: a package that only one of them
needs is an error, since an image of both is made from one file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
HEADING: Final = "# Written by python -m hack.generate_requirements; {what}\n"
PYTHON: Final = "3.11"
"""The version in the images, and the oldest that is supported."""
_PLATFORMS: Final = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")


@dataclass(frozen=True, slots=True)
class Requirements:
    """One file of them."""

    file: str
    what: str
    """What they are for, in the first line of the file."""
    projects: tuple[str, ...] = ()
    """Folders whose pyproject.toml names what is needed; distributions of this repository are left out."""
    table: str = "dependencies"
    """The list in it: `dependencies`, or `requires` of the build system."""
    also: tuple[str, ...] = ()
    """What is needed beside that."""
    there: tuple[str, ...] = ()
    """What the base of the image has, with all that it needs: left out."""

    def direct(self) -> list[str]:
        """The requirements that are written by hand."""
        found = [requirement for project in self.projects for requirement in self._named(project)]
        return [*dict.fromkeys(found), *self.also]

    def _named(self, project: str) -> Iterator[str]:
        document = tomllib.loads((ROOT / project / "pyproject.toml").read_text())
        section = document["build-system" if self.table == "requires" else "project"]
        for requirement in section[self.table]:
            if not requirement.startswith("trainer-"):
                yield requirement


MANAGER: Final = (".", "packages/dashboard", "packages/sweeps", "packages/v1_jobs")
"""The distributions in the image of the manager."""
FILES: Final = (
    Requirements("images/build-requirements.txt", "what builds our wheels.", MANAGER, "requires"),
    Requirements("images/manager/requirements.txt", "manager, dashboard and recorder.", MANAGER),
    Requirements("images/initializer/requirements.txt", "initializers and exporter.", ("packages/initializers",)),
    Requirements(
        "images/transformers/requirements.txt",
        "what the image has beside PyTorch and NumPy of its base.",
        also=("accelerate", "transformers"),
        there=("numpy", "torch"),
    ),
)


def main() -> int:
    """Write all files."""
    for each in FILES:
        place = ROOT / each.file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(HEADING.format(what=each.what) + pinned(each))
    return 0


def pinned(requirements: Requirements) -> str:
    """Resolve requirements: sorted names with versions and hashes.

    Raises:
        SystemExit: uv cannot resolve them, or resolves them differently for two platforms.
    """
    texts = {platform: _compiled(requirements.direct(), platform) for platform in _PLATFORMS}
    there = set(_names(_compiled(requirements.there, _PLATFORMS[0]))) if requirements.there else set()
    kept = {platform: [each for each in _entries(text) if _name(each) not in there] for platform, text in texts.items()}
    first, second = kept.values()
    if first != second:
        differ = ", ".join(sorted({_name(each) for each in {*first} ^ {*second}}))
        raise SystemExit(f"error: {requirements.file}: {' and '.join(_PLATFORMS)} do not need the same: {differ}")
    return "".join(first)


def _compiled(direct: list[str] | tuple[str, ...], platform: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "requirements.in"
        source.write_text("\n".join(direct) + "\n")
        options = ["--quiet", "--no-header", "--no-annotate", "--no-emit-index-url", "--generate-hashes", "--no-config"]
        options += ["--python-version", PYTHON, "--python-platform", platform, "--only-binary", ":all:"]
        options += ["--constraints", str(ROOT / "constraints.txt")]
        uv = Path(sys.executable).with_name("uv")
        if not uv.exists():
            raise SystemExit("error: uv is not installed: pip install -c constraints.txt uv")
        command = [str(uv), "pip", "compile", *options, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
        if done.returncode:
            raise SystemExit(f"error: {' '.join(direct)}:\n{done.stderr}")
    return done.stdout


def _entries(text: str) -> list[str]:
    """The requirements of a file, each with the lines of its hashes."""
    return re.findall(r"^\S[^\n]*\n(?:    [^\n]*\n)*", text, re.MULTILINE)


def _name(entry: str) -> str:
    return entry.partition("==")[0]


def _names(text: str) -> list[str]:
    return [_name(each) for each in _entries(text)]


if __name__ == "__main__":
    sys.exit(main())
