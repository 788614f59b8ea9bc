"""The bundle: the files of the page, which `make dashboard-bundle` builds from `packages/dashboard/web`."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Final, Self

from aiohttp import web

from trainer.kube.errors import ConfigurationError
from trainer_dashboard.serving.answers import HEADERS

_PAGE: Final = "index.html"
_ASSETS: Final = "assets/"
_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
STATIC = Path(__file__).parents[1] / "static"
"""Where the package has it."""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    """By gzip, for browsers that take it."""
    tag: str
    """The ETag: it changes with the content."""

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Compress a file, which takes some milliseconds."""
        return cls(content, gzip.compress(content, mtime=0), f'"{hashlib.sha256(content).hexdigest()[:32]}"')


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files by path, in memory: no path of a request reaches the file system."""

    files: Mapping[str, BundleFile]

    @classmethod
    def read(cls, directory: Path = STATIC) -> Self:
        """Read all files; blocks.

        Raises:
            ConfigurationError: there is no page.
        """
        files = {
            file.relative_to(directory).as_posix(): BundleFile.of(file.read_bytes())
            for file in directory.rglob("*")
            if file.suffix in _TYPES
        }
        if _PAGE not in files:
            raise ConfigurationError(f"the page is missing from {directory}: install trainer-operator again")
        return cls(files)

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The file of a path; the page for all that may be one of its views; None for other names."""
        name = request.path.removeprefix("/")
        if name not in self.files:
            if PurePosixPath(name).suffix in _TYPES and name.startswith(_ASSETS):
                return None
            name = _PAGE
        return _answer(request, name, self.files[name])


def _answer(request: web.BaseRequest, name: str, file: BundleFile) -> web.Response:
    """A file, compressed where the browser takes that; only that it has not changed where the browser has it.

    Scripts and styles, which say nothing about the cluster, may be kept; a browser asks each time whether they are
    those of now, since an upgrade keeps their names. The page itself is not kept.
    """
    headers = {**HEADERS, "Vary": "Accept-Encoding"}
    if name.startswith(_ASSETS):
        headers |= {"Cache-Control": "no-cache", "ETag": file.tag}
        if file.tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    body = file.content
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        body = file.compressed
        headers["Content-Encoding"] = "gzip"
    content_type = _TYPES[PurePosixPath(name).suffix]
    return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)
