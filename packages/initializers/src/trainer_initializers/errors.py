"""What ends a transfer, said in one line without secrets."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import TypeGuard

MESSAGE_LIMIT = 4000
"""Bytes of a message; the kubelet keeps 4096 of a termination message, which begins with the command."""

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|ACCESS_KEY|ACCOUNT_KEY|SAS|CREDENTIAL", re.IGNORECASE)
_SECRET_LENGTH = 4
"""Shorter values are no secrets, and would be cut out of ordinary words."""
_NAMES_FILE = re.compile(r"(_FILE|_PATH|_CREDENTIALS)$", re.IGNORECASE)
"""Variables whose value is the path of a file with a secret, which is none itself."""
_USER = re.compile(r"(?<=://)[^/\s]+@")
_QUERY = re.compile(r"(://[^\s?#]+)\?[^\s#)\"']+")


class TransferError(Exception):
    """The transfer cannot succeed until somebody does what the message says."""


class UnavailableSourceError(TransferError):
    """The transfer can succeed without anybody doing something, when it is started again."""


class InterruptedTransferError(Exception):
    """The answer broke off, or the server could not answer now; the request is worth repeating."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the server asks to wait. Default: 0, the client decides."""


def exit_code_of(error: BaseException) -> int:
    """2 where it fails again until somebody does what the message says, 1 where it is worth trying again.

    The shipped runtimes end the TrainJob at 2, which is also the code of a command line that is wrong.
    """
    is_final = isinstance(error, TransferError | PermissionError) and not isinstance(error, UnavailableSourceError)
    is_panic = not isinstance(error, Exception)  # of a library in Rust, which a variable has led there
    return 2 if is_final or is_panic or _is_full(error) else 1


def _is_full(error: BaseException) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def one_line(error: BaseException, environ: Mapping[str, str]) -> str:
    """The message of an error in one line, without the secrets of the environment and of URLs."""
    if _is_full(error):
        text = f"no space is left on the volume ({error.filename or 'target'}): request a larger volume"
    elif isinstance(error, PermissionError):
        text = (
            f"permission denied: {error.filename}: make the volume writable for this user, for example with "
            "securityContext.fsGroup of the pod"
        )
    elif isinstance(error, TransferError):
        text = str(error)
    elif isinstance(error, InterruptedTransferError):
        text = f"{error}: try again later"
    else:
        text = f"{type(error).__name__}: {error}"
    encoded = printable(" ".join(without_secrets(text, environ).split())).encode()
    if len(encoded) <= MESSAGE_LIMIT:
        return encoded.decode()
    return encoded[: MESSAGE_LIMIT - 3].decode(errors="ignore") + "..."


def printable(text: str) -> str:
    """The text with escapes for what commands a terminal, such as in names of files."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """The text with `***` for values of secret variables, and for users and queries of URLs."""
    secrets = {
        value
        for name, value in environ.items()
        if _SECRET_NAME.search(name)
        and len(value) >= _SECRET_LENGTH
        and not (value.startswith("/") and _NAMES_FILE.search(name))
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _QUERY.sub(r"\1?***", _USER.sub("***@", text))
