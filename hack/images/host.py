"""What installing in a container or on a clean machine needs of this one: pip's settings, authorities, proxies.

Programs that mount and change owners are confined, so that they leave nothing here.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

AUTHORITIES: Final = Path("/etc/ssl/certs")
"""Where Debian and what is made from it have the certificates of authorities."""
_NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CONFINED: Final = ("setpriv", "--pdeathsig=KILL", *_NAMESPACES)
"""What a command comes behind to end with the process that has started it, with all that it starts and mounts."""
_OF_ENVIRONMENT: Final = ":env:"
_OF_THIS_CALL: Final = ("no-input",)


@dataclass(frozen=True, slots=True)
class PipSettings:
    """What pip is configured with here, by files and by variables."""

    text: str
    """A `pip.conf` that says the same."""
    places: tuple[Path, ...]
    """Files and directories of this machine that it names beside authorities: indexes, wheels, constraints."""


def pip_settings() -> PipSettings:
    """Ask pip for its configuration."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return settings_of(answer)


def settings_of(listed: str) -> PipSettings:
    """Read what `pip config list` prints; a variable wins over a file."""
    sections: dict[str, dict[str, str]] = {}
    of_environment: dict[str, str] = {}
    for line in listed.splitlines():
        name, _, shown = line.partition("=")
        section, _, key = name.rpartition(".")
        value = str(ast.literal_eval(shown))
        if section == _OF_ENVIRONMENT:
            of_environment[key] = value
        elif key not in _OF_THIS_CALL:
            sections.setdefault(section, {})[key] = value
    sections.setdefault("global", {}).update(of_environment)
    values = [value for settings in sections.values() for value in settings.values()]
    text = "".join(
        f"[{section}]\n" + "".join(f"{key} = {_indented(value)}\n" for key, value in settings.items())
        for section, settings in sections.items()
    )
    places = {place for value in values for word in value.split() if (place := _place(word)) is not None}
    given = {AUTHORITIES, *places}
    return PipSettings(text, tuple(sorted(each for each in places if each.exists() and given.isdisjoint(each.parents))))


def _indented(value: str) -> str:
    return re.sub(r"\n\s*", "\n  ", value)


def _place(word: str) -> Path | None:
    """The path that a word of a setting names; an index refers to files beside it."""
    if word.startswith("file:"):
        return Path(urlsplit(word).path).parent
    return Path(word) if word.startswith("/") else None


@dataclass(frozen=True, slots=True)
class Host:
    """What a build gets of this machine: pip's settings and places, and the authorities that pip trusts."""

    pip: PipSettings

    def build_arguments(self, directory: Path) -> list[str]:
        """Arguments for buildah, whose files go to a directory."""
        file = directory / "pip.conf"
        file.write_text(self.pip.text)
        authorities = (AUTHORITIES,) if str(AUTHORITIES) in self.pip.text else ()
        mounts = {file: Path("/etc/pip.conf"), **{each: each for each in (*authorities, *self.pip.places)}}
        return [f"--volume={source}:{target}:ro" for source, target in mounts.items()]


def proxies() -> dict[str, str]:
    """The variables that name the proxies of this machine."""
    names = ("http_proxy", "https_proxy", "no_proxy")
    return {name: value for name, value in os.environ.items() if name.lower() in names}
