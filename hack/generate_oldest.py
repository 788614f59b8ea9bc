"""Write constraints-oldest.txt: the lowest versions of our dependencies that all pyproject.toml files allow.

    python -m hack.generate_oldest

Direct dependencies have the lowest version, what they bring the newest that fits (`uv pip compile --resolution
lowest-direct`), and the tools of the tests those of constraints.txt. For the oldest Python that is supported.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from hack.compatibility.combinations import EXTRAS, OLDEST, ROOT, TESTED, TOOLS
from hack.release.source import distributions

HEADING: Final = "# Lowest versions that are allowed, by python -m hack.generate_oldest: make compat-oldest\n"


def main() -> int:
    """Write the file."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        sys.stderr.write(f"error: uv is not installed: pip install -c {TESTED} uv\n")
        return 1
    options = ["--quiet", "--no-config", "--no-header", "--no-annotate", "--no-emit-index-url"]
    options += ["--resolution", "lowest-direct", "--python-version", "3.11"]
    wanted = "\n".join([*direct(), *tools()])
    command = [str(uv), "pip", "compile", *options, "-"]
    done = subprocess.run(command, input=wanted, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        (ROOT / OLDEST).write_text(HEADING + done.stdout)
    return done.returncode


def direct() -> list[str]:
    """What the distributions require beside each other, with the extras that are tested."""
    found: set[str] = set()
    for folder in distributions(ROOT):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        found.update(project["dependencies"])
        if folder != ROOT:
            extra = EXTRAS.get(str(folder.relative_to(ROOT)))
            found.update(project.get("optional-dependencies", {}).get(extra, ()))
    return sorted(each for each in found if not each.startswith("trainer-"))


def tools() -> list[str]:
    """The tools of the tests as constraints.txt has them."""
    return [line for line in (ROOT / TESTED).read_text().splitlines() if line.partition("==")[0] in TOOLS]


if __name__ == "__main__":
    sys.exit(main())
