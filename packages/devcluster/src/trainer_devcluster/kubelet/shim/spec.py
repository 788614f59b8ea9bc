"""What a shim is asked to do: the document on its standard input."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

OperationKind: TypeAlias = Literal["tmpfs", "bind", "directory", "symlink", "proc"]


@dataclass(frozen=True, slots=True)
class FilesystemStep:
    """One step in building the container's root file system."""

    kind: OperationKind
    target: str
    """Absolute path in the container; a bind makes its mount point if there is none."""
    source: str = ""
    """What to bind (a path on the host), or where a symbolic link points."""
    read_only: bool = False
    optional: bool = False
    """Whether a failure is passed over: for what the host itself cannot use either, such as a broken FUSE mount."""


@dataclass(frozen=True, slots=True)
class IpBatch:
    """Commands for `ip -batch`."""

    namespace: Literal["new", "joined"]
    """Network namespace in which they run: the one that the sandbox makes or the one it has joined."""
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A process that makes namespaces and keeps them until its standard input closes."""

    join: tuple[str, ...] = ()
    """Namespace files to enter first, in this order."""
    unshare: tuple[str, ...] = ()
    """Kinds of namespaces to make: user, net, uts, ipc."""
    hostname: str = ""
    ip: str = ""
    """Path of iproute2's `ip`."""
    batches: tuple[IpBatch, ...] = ()
    serve_names: bool = False
    """Whether to answer on port 53 of the loopback address that no name exists."""
    listen: tuple[str, int] | None = None
    """Address and port, in the new network, of a listening socket that goes to `hand_over`."""
    hand_over: int = -1
    """Descriptor of a Unix socket whose other end gets the listening socket before the sandbox reports."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much of a container's output is kept."""

    max_bytes: int = 10 * 1024 * 1024
    """Size of a file after which another is begun. Default: 10 Mi, as in Kubernetes."""
    max_files: int = 5
    """Files of one run; the oldest goes when there are more. Default: 5, as in Kubernetes."""


DEFAULT_LOG_LIMITS = LogLimits()


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A program to run and watch."""

    command: tuple[str, ...]
    environment: dict[str, str]
    working_directory: str
    log_file: str
    isolated: bool
    """Whether to make mount and PID namespaces; without, the fields below are empty."""
    join: tuple[str, ...] = ()
    new_root: str = ""
    """An empty directory of the host on which the root file system is put together; nothing is left in it."""
    operations: tuple[FilesystemStep, ...] = ()
    run_as: tuple[int, int] | None = None
    """User and group to return to after having been root of a user namespace; None changes nothing."""
    log_limits: LogLimits = DEFAULT_LOG_LIMITS
    commands: int = -1
    """Descriptor of a Unix socket, inherited, on which commands come that are to run in the container as well."""


LONGEST_COMMAND = 128 * 1024
"""Bytes of an encoded command."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command to run beside the container's program; with it come descriptors: a socket for reports, and streams."""

    command: tuple[str, ...]
    streams: tuple[int, ...]
    """What the descriptors after the first are to be: 0 is standard input, 1 output, 2 error; others are empty."""
    terminal: bool = False
    """Whether they are one terminal."""


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """One look at a container, or one thing done in it, which the monitor of the container sees to."""

    kind: Literal["tcp", "http", "exec"]
    timeout: float
    """Seconds after which it counts as failed; 0 sets no limit."""
    host: str = ""
    port: int = 0
    scheme: str = "http"
    """http or https; the certificate is not verified."""
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    any_status: bool = False
    """Whether an HTTP answer with any status will do."""
    command: tuple[str, ...] = ()
    number: int = 0
    """Stands in the report, so that it is known which probe it answers."""


Spec: TypeAlias = SandboxSpec | ContainerSpec


def encode(spec: Spec) -> bytes:
    """The spec as one line of JSON."""
    kind = "sandbox" if isinstance(spec, SandboxSpec) else "container"
    return json.dumps({"kind": kind, "spec": asdict(spec)}).encode() + b"\n"


def decode(line: bytes) -> Spec:
    """The spec that `encode` wrote."""
    document: dict[str, Any] = json.loads(line)
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in document["spec"].items()
    }
    if document["kind"] == "sandbox":
        batches = ((batch["namespace"], tuple(batch["commands"])) for batch in fields["batches"])
        fields["batches"] = tuple(IpBatch(*batch) for batch in batches)
        return SandboxSpec(**fields)
    fields["operations"] = tuple(FilesystemStep(**operation) for operation in fields["operations"])
    fields["log_limits"] = LogLimits(**fields["log_limits"])
    return ContainerSpec(**fields)


def encode_command(command: CommandSpec) -> bytes:
    """The command as JSON."""
    return json.dumps(asdict(command)).encode()


def decode_command(text: bytes) -> CommandSpec:
    """The command that `encode_command` wrote."""
    fields: dict[str, Any] = json.loads(text)
    return CommandSpec(tuple(fields["command"]), tuple(fields["streams"]), fields["terminal"])


def encode_probe(probe: ProbeSpec) -> bytes:
    """The probe as one line of JSON, which no line with the number of a signal looks like."""
    return json.dumps(asdict(probe)).encode() + b"\n"


def decode_probe(line: bytes) -> ProbeSpec:
    """The probe that `encode_probe` wrote."""
    fields: dict[str, Any] = json.loads(line)
    fields["headers"] = tuple((name, value) for name, value in fields["headers"])
    fields["command"] = tuple(fields["command"])
    return ProbeSpec(**fields)
