"""A dev cluster without a kubelet, spoken to over sockets that send whatever a test likes."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from e2e.kubectl import BIN
from e2e.processes import Process

TIMEOUT = 30


@dataclass(slots=True)
class RawServer:
    """The process, and how to reach it."""

    process: Process
    kubeconfig: Path
    host: str = ""
    port: int = 0
    token: str = ""
    context: ssl.SSLContext | None = None

    @classmethod
    def in_directory(cls, directory: Path, *options: str) -> RawServer:
        """A server that keeps its objects in a directory; not started."""
        kubeconfig = directory / "kubeconfig"
        command = [str(BIN / "trainer"), "cluster", "--no-kubelet", "--kubeconfig", str(kubeconfig)]
        command += ["--data-dir", str(directory / "data"), *options]
        return cls(Process(command, directory / "server.log"), kubeconfig)

    def start(self) -> None:
        """Start it, or start it again; the port may be another one."""
        self.process.start(ready="cluster ready: https://")
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        url = urlsplit(cluster["server"])
        self.host, self.port = url.hostname or "", url.port or 0
        self.token = config["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=authority)

    def plain(self) -> socket.socket:
        """A TCP connection."""
        return socket.create_connection((self.host, self.port), timeout=TIMEOUT)

    def connect(self) -> ssl.SSLSocket:
        """A TLS connection."""
        assert self.context is not None
        return self.context.wrap_socket(self.plain(), server_hostname=self.host)

    def head(self, method: str, path: str, *headers: str, version: str = "1.1") -> bytes:
        """The head of a request of the administrator."""
        lines = [
            f"{method} {path} HTTP/{version}",
            f"Host: {self.host}",
            f"Authorization: Bearer {self.token}",
            *headers,
        ]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """One ordinary request; header names are written with underscores."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=TIMEOUT, context=self.context)
        try:
            sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            sent |= {name.replace("_", "-"): value for name, value in headers.items()}
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            text = response.read()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text
        finally:
            connection.close()

    def memory(self) -> int:
        """Resident bytes of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [size] = re.findall(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        return int(size) * 1024


@contextmanager
def running(directory: Path, *options: str) -> Iterator[RawServer]:
    """A server until the context closes."""
    server = RawServer.in_directory(directory, *options)
    server.start()
    try:
        yield server
    finally:
        server.process.stop()


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Code and body of the answer on a connection; the code is 0 when it is closed without one."""
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.BadStatusLine, http.client.IncompleteRead, ConnectionError):
        return 0, b""
