"""The instructions that our Dockerfile uses, so that tests do what it says and not what they say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One of a stage."""

    name: str
    """Such as RUN."""
    text: str
    """What follows the name, on one line."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What makes one image."""

    name: str
    """Empty for the last one."""
    instructions: tuple[Instruction, ...]

    def all(self, name: str) -> list[str]:
        """The texts of all instructions of a name."""
        return [each.text for each in self.instructions if each.name == name]

    def variables(self) -> dict[str, str]:
        """What ARG and ENV set."""
        found: dict[str, str] = {}
        for each in self.instructions:
            if each.name in {"ARG", "ENV"}:
                for word in shlex.split(each.text):
                    name, _, value = word.partition("=")
                    found[name] = Template(value).safe_substitute(found)
        return found

    def environment(self) -> dict[str, str]:
        """What ENV sets, for what runs in the image."""
        names = {word.partition("=")[0] for text in self.all("ENV") for word in shlex.split(text)}
        return {name: value for name, value in self.variables().items() if name in names}

    def health_check(self) -> list[str]:
        """The command of HEALTHCHECK."""
        [text] = self.all("HEALTHCHECK")
        command: list[str] = json.loads(text.partition("CMD ")[2])
        return command


def stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile, in their order."""
    found: list[Stage] = []
    for each in _instructions(text):
        if each.name == "FROM":
            _, _, name = each.text.partition(" AS ")
            found.append(Stage(name, ()))
        elif found:  # an ARG before the first stage is for FROM alone
            found[-1] = Stage(found[-1].name, (*found[-1].instructions, each))
    return found


def _instructions(text: str) -> Iterator[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield Instruction(name, rest)
