"""Carrying out a probe: a connection or a request from the pod's network, or a command in the container."""

from __future__ import annotations

import errno
import os
import signal
import socket
from types import FrameType
from typing import NoReturn

from . import commands, processes, reports
from .spec import ContainerSpec, ProbeSpec

_LONGEST_MESSAGE = 1024
"""Characters; a report has to fit into a pipe at once, so that it does not mix with others."""
_LONGEST_STATUS_LINE = 4096
_USER_AGENT = "kube-probe/1.37"


class ProbeError(Exception):
    """The container is not as the probe wants it; the message says how it is."""


def answer(probe: ProbeSpec, container: ContainerSpec, init: int, answers: int) -> NoReturn:
    """Carry out a probe in this process, which is made for it and ends with it, or in a child of it, and report.

    Args:
        probe: what to do.
        container: what runs in the container.
        init: PID of the container's first process.
        answers: reports for the kubelet.
    """
    commands.step_aside(container)
    try:
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, probe.timeout)
        try:
            problem, errored = _find_problem(probe, container, init), False
        except processes.ProcessStartError as error:
            problem, errored = str(error), True
        message = (problem or "")[:_LONGEST_MESSAGE]
        reports.send(answers, reports.Probed(probe.number, success=problem is None, message=message, errored=errored))
    finally:
        os._exit(0)


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _find_problem(probe: ProbeSpec, container: ContainerSpec, init: int) -> str | None:
    """What is wrong with the container, in the words of the kubelet, which may be none; None if nothing is wrong.

    Raises:
        ProcessStartError: the command does not exist.
    """
    try:
        if probe.kind == "exec":
            _execute(probe, container, init)
        else:
            _connect(probe)
    except ProbeError as error:
        return str(error)
    except TimeoutError:
        if probe.kind == "exec":
            return f'command timed out: "{" ".join(probe.command)}" timed out after {probe.timeout:g}s'
        if probe.kind == "http":
            return f'Get "{_url(probe)}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
        return _describe(probe, "i/o timeout")
    except socket.gaierror as error:
        return _describe(probe, f"lookup {probe.host}: {error.strerror}")
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        return f"exec: {text}" if probe.kind == "exec" else _describe(probe, f"connect: {text}")
    return None


def _connect(probe: ProbeSpec) -> None:
    with socket.create_connection((probe.host, probe.port)) as connection:
        if probe.kind == "http":
            _request(probe, connection)


def _describe(probe: ProbeSpec, problem: str) -> str:
    dialled = f"dial tcp {probe.host}:{probe.port}: {problem}"
    return dialled if probe.kind == "tcp" else f'Get "{_url(probe)}": {dialled}'


def _url(probe: ProbeSpec) -> str:
    return f"{probe.scheme}://{probe.host}:{probe.port}{probe.path}"


def _request(probe: ProbeSpec, connection: socket.socket) -> None:
    if probe.scheme == "https":
        connection = _secured(connection)
    lines = [f"GET {probe.path} HTTP/1.1", *(f"{name}: {value}" for name, value in _headers(probe).items())]
    connection.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
    received = b""
    while b"\n" not in received and len(received) < _LONGEST_STATUS_LINE:
        chunk = connection.recv(_LONGEST_STATUS_LINE)
        if not chunk:
            break
        received += chunk
    if not received:
        raise ProbeError(f'Get "{_url(probe)}": EOF')
    status_line = received.partition(b"\n")[0].decode("latin-1").rstrip("\r")
    protocol, _, rest = status_line.partition(" ")
    code = rest[:3]
    if not protocol.startswith("HTTP/") or not code.isdigit():
        problem = f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{status_line}"'
        raise ProbeError(f'Get "{_url(probe)}": {problem}')
    if not probe.any_status and not 200 <= int(code) < 400:
        raise ProbeError(f"HTTP probe failed with statuscode: {code}")


def _headers(probe: ProbeSpec) -> dict[str, str]:
    usual = {"Host": f"{probe.host}:{probe.port}", "User-Agent": _USER_AGENT, "Accept": "*/*", "Connection": "close"}
    own = {name.title(): value for name, value in probe.headers}
    return {name: value for name, value in (usual | own).items() if value}


def _secured(connection: socket.socket) -> socket.socket:
    # Imported here because the other shims do not need it, and it takes long.
    import ssl  # noqa: PLC0415

    context = ssl.create_default_context()
    # A probe asks whether the server answers, not who it is (Kubernetes documentation, "HTTP probes").
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection)


def _execute(probe: ProbeSpec, container: ContainerSpec, init: int) -> None:
    output = os.memfd_create("probe")
    program = commands.start(probe.command, container, init, {1: os.dup(output), 2: os.dup(output)})
    try:
        _, status = os.waitpid(program, 0)
    except TimeoutError:
        os.killpg(program, signal.SIGKILL)
        raise
    if status != 0:
        printed = os.pread(output, _LONGEST_MESSAGE, 0).decode(errors="replace")
        raise ProbeError(printed)
