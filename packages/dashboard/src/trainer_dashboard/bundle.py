"""The bundle: the files of the page, which `make dashboard-bundle` builds from `dashboard/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from aiohttp import web

from trainer.kube.errors import ConfigurationError
from trainer_dashboard.answers import HEADERS

_PAGE = "index.html"
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
STATIC = Path(__file__).parent / "static"
"""Where the package has it."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files by path, in memory: no path of a request reaches the file system."""

    files: Mapping[str, bytes]

    @classmethod
    def read(cls, directory: Path = STATIC) -> Self:
        """Read all files; blocks.

        Raises:
            ConfigurationError: there is no page.
        """
        files = {
            file.relative_to(directory).as_posix(): file.read_bytes()
            for file in directory.rglob("*")
            if file.suffix in _TYPES
        }
        if _PAGE not in files:
            raise ConfigurationError(f"the page is missing from {directory}: install trainer-operator again")
        return cls(files)

    def answer(self, path: str) -> web.Response | None:
        """The file of a path; the page for all that may be one of its views; None for other names."""
        name = path.removeprefix("/")
        if name not in self.files:
            if PurePosixPath(name).suffix in _TYPES and name.startswith("assets/"):
                return None
            name = _PAGE
        content_type = _TYPES[PurePosixPath(name).suffix]
        return web.Response(body=self.files[name], content_type=content_type, charset="utf-8", headers=HEADERS)
