"""A small Hub that huggingface_hub talks to (`HF_ENDPOINT`): repositories, large files, gates and commits.

    python -m packages.initializers.tests.servers.hub_server --port 8099 models/user/name=DIR datasets/user/name=DIR

With the variable ACCESS_TOKEN the repositories are gated, and only who has this token may read them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from packages.initializers.tests.servers.command import (
    parse_arguments,
    serve_until_ended,
)
from packages.initializers.tests.servers.range_server import LOOPBACK, RangeHandler, RangeServer

_API = re.compile(r"/api/(models|datasets)/(.+?)(?:/(tree|revision|preupload|commit)/([^/]+))?")
_RESOLVE = re.compile(r"/(datasets/)?(.+?)/resolve/([^/]+)/(.+)")
_LARGE = 1 << 20
"""Files of this size and binary ones are large: they have a SHA-256 and are served by the content server."""


@dataclass
class HubRepo:
    """A repository; its commit is the hash of its files."""

    files: dict[str, bytes] = field(default_factory=dict)
    is_gated: bool = False
    commits: int = 0

    @property
    def commit(self) -> str:
        """The name of the newest commit."""
        state = hashlib.sha1(usedforsecurity=False)
        for name, content in sorted(self.files.items()):
            state.update(f"{name} {_sha256(content)}\n".encode())
        return state.hexdigest()


class HubServer(RangeServer):
    """Serves `repos` by `models/user/name` and `datasets/user/name`; gated ones to `tokens` only."""

    def __init__(self, port: int = 0, *, host: str = LOOPBACK) -> None:
        self.repos: dict[str, HubRepo] = {}
        self.uploads: list[str] = []
        """SHA-256 of the large files that were uploaded."""
        self.objects: dict[str, bytes] = {}
        self.changes = threading.Lock()
        super().__init__(port=port, host=host)

    def handler_class(self) -> type[RangeHandler]:
        """The class that answers requests."""
        return HubHandler

    @property
    def content_url(self) -> str:
        """The content server: another host, which must not see tokens, where there is another name for it."""
        return self.url.replace(LOOPBACK, "localhost")


class HubHandler(RangeHandler):
    """Answers the requests of huggingface_hub."""

    owner: ClassVar[HubServer]

    def serve(self) -> None:
        """Answer GET and HEAD."""
        path, fault = self.begin()
        if fault is not None and fault.status is not None:
            self.answer(fault.status, headers=dict(fault.headers))
        elif path.startswith("/content/"):
            self.send_file(self.owner.objects[path.removeprefix("/content/")], fault, {"ETag": '"x"'})
        elif found := _API.fullmatch(path):
            self._serve_api(f"{found[1]}/{found[2]}", found[3], unquote(found[4] or "main"))
        elif found := _RESOLVE.fullmatch(path):
            self._resolve(f"{'datasets' if found[1] else 'models'}/{found[2]}", found[3], found[4])
        else:
            self.answer(404)

    def do_POST(self) -> None:  # noqa: N802 name of the base class
        """Make repositories and commits."""
        path, _ = self.begin()
        body = self._body()
        if self.owner.tokens and self.token() not in self.owner.tokens:
            self._error(401, "Invalid username or password.")
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif path.endswith("/info/lfs/objects/batch"):
            self._batch(json.loads(body))
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif (found := _API.fullmatch(path)) and found[3] == "preupload":
            self._json({"files": [_mode(file) for file in json.loads(body)["files"]]})
        elif found and found[3] == "commit":
            self._commit(f"{found[1]}/{found[2]}", [json.loads(line) for line in body.splitlines()])
        else:
            self.answer(404)

    def do_PUT(self) -> None:  # noqa: N802 name of the base class
        """Take a large file."""
        path, _ = self.begin()
        content = self._body()
        self.owner.objects[path.removeprefix("/content/")] = content
        self.owner.uploads.append(path.removeprefix("/content/"))
        self.answer(200)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _serve_api(self, name: str, what: str | None, revision: str) -> None:
        repo = self._repo(name, revision)
        if repo is None:
            return
        if what == "tree":
            self._json([_entry(path, content) for path, content in sorted(repo.files.items())])
        else:
            ident = name.partition("/")[2]
            self._json({"id": ident, "sha": repo.commit, "siblings": [], "private": False, "tags": []})

    def _resolve(self, name: str, revision: str, path: str) -> None:
        repo = self._repo(name, revision)
        if repo is None:
            return
        if repo.is_gated and self.token() not in self.owner.tokens:
            self._error(403, "Access to this repository is restricted.", "GatedRepo")
            return
        content = repo.files.get(path)
        if content is None:
            self._error(404, "Entry not found", "EntryNotFound")
            return
        headers = {"X-Repo-Commit": repo.commit, "ETag": f'"{_blob(content)}"'}
        if not _is_large(content):
            self.send_file(content, None, headers)
            return
        digest = _sha256(content)
        self.owner.objects[digest] = content
        location = f"{self.owner.content_url}/content/{digest}?X-Amz-Signature=signed"
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
        self.answer(302, headers={**headers, **linked, "Location": location})

    def _repo(self, name: str, revision: str) -> HubRepo | None:
        repo = self.owner.repos.get(name)
        if self.token() is not None and self.token() not in self.owner.tokens:
            self._error(401, "Invalid credentials in Authorization header")
        elif repo is None:
            self._error(404, "Repository not found", "RepoNotFound")
        elif revision not in {"main", repo.commit}:
            self._error(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        elif repo.is_gated and self.token() not in self.owner.tokens:
            self._error(403, "Access to this repository is restricted.", "GatedRepo")
        else:
            return repo
        return None

    def _create(self, asked: dict[str, str]) -> None:
        user = asked.get("organization") or "user"
        name = f"{asked.get('type') or 'model'}s/{user}/{asked['name']}"
        with self.owner.changes:
            is_new = name not in self.owner.repos
            self.owner.repos.setdefault(name, HubRepo())
        answer = {"url": f"{self.owner.url}/{user}/{asked['name']}", "name": f"{user}/{asked['name']}"}
        self._json(answer, 200 if is_new else 409)

    def _batch(self, asked: dict[str, list[dict[str, str]]]) -> None:
        objects: list[dict[str, object]] = []
        for wanted in asked["objects"]:
            entry: dict[str, object] = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.owner.objects:
                entry["actions"] = {"upload": {"href": f"{self.owner.content_url}/content/{wanted['oid']}"}}
            objects.append(entry)
        self._json({"transfer": "basic", "objects": objects})

    def _commit(self, name: str, lines: list[dict[str, dict[str, str]]]) -> None:
        repo = self.owner.repos[name]
        with self.owner.changes:
            for line in lines:
                key, value = str(line["key"]), line["value"]
                if key == "file":
                    repo.files[value["path"]] = base64.b64decode(value["content"])
                elif key == "lfsFile":
                    repo.files[value["path"]] = self.owner.objects[value["oid"]]
            repo.commits += 1
        commit = repo.commit
        url = f"{self.owner.url}/{name.partition('/')[2]}/commit/{commit}"
        self._json({"commitUrl": url, "commitOid": commit, "success": True})

    def _json(self, value: object, status: int = 200) -> None:
        self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, text: str, code: str | None = None) -> None:
        headers = {"X-Error-Message": text, **({"X-Error-Code": code} if code else {})}
        self.answer(status, json.dumps({"error": text}).encode(), {"Content-Type": "application/json", **headers})


def read_directory(directory: Path) -> dict[str, bytes]:
    """The files below a directory, as those of a repository."""
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def main() -> None:
    """Serve directories as repositories until the process is ended."""
    given = parse_arguments("such as models/me/base=./base")
    token = os.environ.get("ACCESS_TOKEN", "")
    with HubServer(given.port, host=given.host) as server:
        server.tokens |= {token} if token else set()
        for name, directory in given.directories:
            server.repos[name] = HubRepo(read_directory(directory), is_gated=bool(token))
        serve_until_ended(server.url)


def _entry(path: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": _blob(content)}
    if _is_large(content):
        entry["lfs"] = {"oid": _sha256(content), "size": len(content), "pointerSize": 134}
    return entry


def _mode(file: dict[str, str]) -> dict[str, object]:
    is_large = int(file["size"]) >= _LARGE or b"\0" in base64.b64decode(file["sample"])
    return {"path": file["path"], "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": False}


def _is_large(content: bytes) -> bool:
    return len(content) >= _LARGE or b"\0" in content[:512]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


if __name__ == "__main__":
    main()
