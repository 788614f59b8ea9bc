"""A `trainer dashboard-server` as config/dashboard installs it, and clients that mean it well or ill."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.cluster import Cluster
from e2e.identity import write_credentials
from e2e.installation import CONFIG
from e2e.kubectl import BIN
from e2e.processes import Process

ACCOUNT, ACCOUNT_NAMESPACE = "trainer-dashboard", "trainer-system"
_FILES = ("service_account", "role", "role_binding")
_RECEIVED = 4096
"""Bytes that the kernel takes for a client that does not read."""


@dataclass(slots=True)
class Unread:
    """Streams that are opened and not read, until the context closes."""

    host: str
    port: int
    opened: list[socket.socket] = field(default_factory=list)

    def open(self, path: str, token: str) -> socket.socket:
        """Ask for a path."""
        connection = socket.socket()
        self.opened.append(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
        connection.settimeout(20)
        connection.connect((self.host, self.port))
        connection.sendall(_head("GET", path, token) + b"\r\n")
        return connection

    def close(self) -> None:
        """Leave all of them."""
        for each in self.opened:
            each.close()
        self.opened.clear()


@dataclass(frozen=True, slots=True)
class DashboardServer:
    """A dashboard that runs."""

    process: Process
    host: str
    port: int
    health_port: int

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://{self.host}:{self.port}"

    def seconds(self, path: str, token: str) -> float:
        """How long the answer to a request takes, which must succeed."""
        begun = time.monotonic()
        status = self.status("GET", path, token)
        assert status == 200, (path, status)
        return time.monotonic() - begun

    def seconds_to_first_byte(self, path: str, token: str) -> float:
        """How long a stream takes to begin."""
        begun = time.monotonic()
        with self.request("GET", path, token) as answer:
            answer.read(1)
            return time.monotonic() - begun

    def health_seconds(self) -> float:
        """How long the answer of the probe takes."""
        begun = time.monotonic()
        with urllib.request.urlopen(f"http://{self.host}:{self.health_port}/healthz", timeout=30) as answer:
            assert answer.status == 200
        return time.monotonic() - begun

    def status(self, method: str, path: str, token: str, body: bytes | None = None) -> int:
        """The status of an answer, which is read to its end; 0 where the connection breaks."""
        try:
            with self.request(method, path, token, body) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        except OSError:
            return 0

    def request(self, method: str, path: str, token: str, body: bytes | None = None) -> Any:
        """An answer, whose content the caller reads."""
        headers = {"Authorization": f"Bearer {token}", "X-Requested-With": "trainer-dashboard"}
        asked = urllib.request.Request(f"{self.address}{path}", data=body, headers=headers, method=method)
        return urllib.request.urlopen(asked, timeout=30)

    @contextmanager
    def unread(self) -> Iterator[Unread]:
        """Somebody who opens streams and reads none."""
        streams = Unread(self.host, self.port)
        try:
            yield streams
        finally:
            streams.close()


def _head(method: str, path: str, token: str) -> bytes:
    headers = {"Host": "dashboard", "Authorization": f"Bearer {token}", "X-Requested-With": "trainer-dashboard"}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items()), ""]
    return "\r\n".join(lines).encode()


def of_environment(arguments: list[str]) -> list[str]:
    """The command of the environment of the tests."""
    return [str(BIN / "trainer"), *arguments]


@contextmanager
def running_dashboard_server(
    cluster: Cluster, directory: Path, *more: str, program: Callable[[list[str]], list[str]] = of_environment
) -> Iterator[DashboardServer]:
    """One with the account and the rights of config/dashboard, in plain HTTP on loopback.

    Args:
        cluster: whose trainings it shows.
        directory: where its files go.
        more: options of the server.
        program: makes a command of the arguments of `trainer`.
    """
    cluster.kubectl("create", "namespace", ACCOUNT_NAMESPACE, check=False)
    manifests = [str(CONFIG / "dashboard" / f"{file}.yaml") for file in _FILES]
    with ExitStack() as stack:
        for path in manifests:
            cluster.kubectl("apply", "--server-side", "-n", ACCOUNT_NAMESPACE, "-f", path)
            stack.callback(cluster.kubectl, "delete", "-n", ACCOUNT_NAMESPACE, "--ignore-not-found", "-f", path)
        kubeconfig = directory / "kubeconfig"
        write_credentials(cluster, kubeconfig, ACCOUNT, ACCOUNT_NAMESPACE)
        options = ["--plain-http", "--host", "127.0.0.1", "--port", "0", "--health-port", "0", *more]
        command = program(["dashboard-server", *options, "--kubeconfig", str(kubeconfig)])
        process = Process(command, directory / "dashboard.log")
        stack.callback(process.stop)
        process.start(ready='"server": "dashboard"')
        addresses = dict(_addresses(process.output()))
        (host, port), (_, health_port) = addresses["dashboard"], addresses["health"]
        yield DashboardServer(process, host, port, health_port)


def _addresses(output: str) -> Iterator[tuple[str, tuple[str, int]]]:
    for line in output.splitlines():
        if '"server": ' in line:
            entry = json.loads(line)
            host, _, port = entry["address"].rpartition(":")
            yield entry["server"], (host, int(port))
