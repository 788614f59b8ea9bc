"""The environment of an initializer: the contract of KEP-2170 and of the released images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from trainer_initializers.errors import TransferError, without_secrets
from trainer_initializers.split import parse_split

DIRECTORIES = {"dataset": "/workspace/dataset", "model": "/workspace/model", "export": "/workspace/adapters"}
"""Where each command reads or writes, as in KEP-2170; the variable TRANSFER_PATH names another place."""

_MODEL_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.gguf")
"""What the released initializer fetches of a model on the Hub."""
_CONNECTIONS_LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOptions:
    """What is transferred, and how."""

    command: str
    """`dataset`, `model` or `export`."""
    uri: str
    """Where from, or for an export where to."""
    directory: Path
    """The directory on this machine."""
    environ: Mapping[str, str] = field(repr=False)
    """The variables of the container, with credentials."""
    allow: tuple[str, ...] = ()
    """Patterns of files to transfer. Default: all."""
    ignore: tuple[str, ...] = ()
    """Patterns of files to leave out, which win over `allow`. Default: none."""
    connections: int = 16
    """Requests at the same time. Default: 16, which fills 10 Gbit/s from one region of S3."""
    timeout: float = 60.0
    """Seconds without a byte after which a request is repeated. Default: 60."""
    retry_interval: float = 1.0
    """Seconds before the first repetition; they double from one to the next. Default: 1."""
    split: str = ""
    """The rows that are selected, as in `trainer_initializers.split`. Default: all."""

    @property
    def location(self) -> SplitResult:
        """The parts of the URI."""
        return urlsplit(self.uri)

    @property
    def shown(self) -> str:
        """The URI without secrets, for messages and records."""
        return without_secrets(self.uri, self.environ)

    @property
    def source(self) -> str:
        """What the target holds, for records: the URI without secrets, and the rows that were selected."""
        return f"{self.shown} SPLIT={self.split}" if self.split else self.shown

    def variable(self, name: str) -> str | None:
        """A variable of the environment; an empty one counts as not set, as in the images of Kubeflow Trainer (Go)."""
        return self.environ.get(name) or None

    def selects(self, *names: str) -> bool:
        """Whether a file is transferred; it is known by its path in the dataset, and perhaps by a longer one."""
        if any(fnmatchcase(name, pattern) for pattern in self.ignore for name in names):
            return False
        return not self.allow or any(fnmatchcase(name, pattern) for pattern in self.allow for name in names)


def read_options(command: str, environ: Mapping[str, str]) -> TransferOptions:
    """The options that the environment gives.

    Raises:
        TransferError: a variable is missing or has a value that cannot be used.
    """
    uri = environ.get("STORAGE_URI", "").strip()
    if not uri:
        raise TransferError("STORAGE_URI is not set: set storageUri in the TrainJob, such as hf://user/name")
    scheme = uri.partition("://")[0].lower() if "://" in uri else ""
    if not scheme:
        raise TransferError(f"STORAGE_URI {uri!r} has no scheme: write it as hf://user/name, s3://bucket/prefix, ...")
    try:
        urlsplit(uri)
    except ValueError as error:
        raise TransferError(f"STORAGE_URI {without_secrets(uri, environ)!r} is no URI: {error}") from None
    allow = _patterns(environ, "ALLOW_PATTERNS")
    if not allow and command == "model" and scheme == "hf":
        allow = _MODEL_FILES
    return TransferOptions(
        command=command,
        uri=scheme + uri[len(scheme) :],
        directory=Path(os.path.normpath(environ.get("TRANSFER_PATH") or DIRECTORIES[command])),
        environ=dict(environ),
        allow=allow,
        ignore=_patterns(environ, "IGNORE_PATTERNS"),
        connections=int(_number(environ, "TRANSFER_CONNECTIONS", 16, least=1, most=_CONNECTIONS_LIMIT)),
        timeout=_number(environ, "TRANSFER_TIMEOUT_SECONDS", 60, least=0.01, most=3600),
        retry_interval=_number(environ, "TRANSFER_RETRY_SECONDS", 1, least=0, most=60),
        split=_split(command, environ),
    )


def _split(command: str, environ: Mapping[str, str]) -> str:
    text = environ.get("SPLIT", "").strip()
    if text and command != "dataset":
        raise TransferError(f"SPLIT={text!r} selects rows of a dataset, and the command is {command}: remove SPLIT")
    if text:
        parse_split(text)
    return text


def _patterns(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The patterns of a comma-separated list; one that ends in a slash means all below, as on the Hub."""
    patterns = (pattern.strip() for pattern in environ.get(name, "").split(","))
    return tuple(f"{pattern}*" if pattern.endswith("/") else pattern for pattern in patterns if pattern)


def _number(environ: Mapping[str, str], name: str, default: float, *, least: float, most: float) -> float:
    text = environ.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if least <= value <= most:
        return value
    raise TransferError(f"{name}={text!r} must be a number from {least:g} to {most:g}")
