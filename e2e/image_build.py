"""Does what the first stage of a Dockerfile of ours says in a directory of this machine, where there is no Docker."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from e2e.dockerfile import ROOT, Instruction, Stage

PLACES = re.compile(r"(?<![\w.])/(?=(source|wheels|opt/trainer|opt/initializer|plugins|workspace)\b)")
"""Where our Dockerfiles put things; here that is below a directory of the test."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What a build stage makes."""

    root: Path
    """Stands for the root directory of the image."""
    stage: Stage
    """What is done."""
    home: str
    """What the image has of it, such as opt/trainer: a virtual environment."""

    def at(self, text: str) -> str:
        """A text of the Dockerfile with the places of this installation."""
        return PLACES.sub(f"{self.root}/", text)

    def make_base(self) -> None:
        """Make a Python that stands for that of the base."""
        subprocess.run([sys.executable, "-m", "venv", self.root / "builder"], check=True)

    def build(self) -> None:
        """Do all that the stage says."""
        for each in self.stage.instructions:
            match each:
                case Instruction("WORKDIR", text):
                    Path(self.at(text)).mkdir(parents=True, exist_ok=True)
                case Instruction("COPY", text):
                    self.copy(text)
                case Instruction("RUN", text):
                    self.run(text)
                case Instruction(name):
                    assert name in {"ARG", "ENV"}, f"the test does not know {name}"

    def run(self, command: str) -> None:
        """Do what a RUN of the stage says."""
        ours = {name: value for name, value in self.stage.environment().items() if name != "PIP_NO_CACHE_DIR"}
        path = f"{self.root}/builder/bin:{os.environ['PATH']}"
        subprocess.run(
            ["sh", "-e", "-c", self.at(command)],
            cwd=self.root / "source",
            env=os.environ | ours | {"PATH": path, "VIRTUAL_ENV": f"{self.root}/builder"},
            check=True,
            timeout=240,
        )

    def copy(self, arguments: str) -> None:
        """Do what a COPY of the build stage says."""
        *sources, target = arguments.split()
        for source in sources:
            assert is_sent(source), f".dockerignore keeps {source} from the builder"
            place = self.root / "source" / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=not_sent, dirs_exist_ok=True)
            else:
                assert target.endswith("/"), f"the test does not know COPY {arguments}"
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)

    def python(self, code: str) -> str:
        """What a program prints with the Python of the installation."""
        command = [f"{self.root}/{self.home}/bin/python", "-I", "-c", code]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", env={}).stdout

    def distributions(self) -> dict[str, tuple[str, list[str]]]:
        """Version and requirements of what is installed."""
        code = (
            "import importlib.metadata as m, json;"
            "print(json.dumps({d.name: [d.version, d.requires or []] for d in m.distributions()}))"
        )
        return {normalised(name): tuple(each) for name, each in json.loads(self.python(code)).items()}

    def files(self) -> dict[str, int]:
        """When each file was last written."""
        return {str(path): path.lstat().st_mtime_ns for path in (self.root / self.home).rglob("*")}


def is_sent(path: str) -> bool:
    """Whether .dockerignore, of which the last line that fits counts, lets a path of ours through."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        folders = [path, *map(str, Path(path).parents)]
        if line and not line.startswith("#") and any(fnmatch.fnmatch(each, pattern) for each in folders):
            sent = line.startswith("!")
    return sent


def not_sent(folder: str, names: list[str]) -> list[str]:
    """The names in a folder of ours that .dockerignore keeps back."""
    place = Path(folder).relative_to(ROOT)
    return [name for name in names if not is_sent(str(place / name))]


def normalised(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """The versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {normalised(name): version for name, _, version in (line.partition("==") for line in lines) if version}
