"""Entry point of the shim: reads its spec and becomes a sandbox or a container's monitor."""

from __future__ import annotations

import os

from . import monitor, sandbox
from .spec import SandboxSpec, decode

_STDIN, _STDOUT = 0, 1


def main() -> None:
    """Read one line with the spec from standard input and carry it out."""
    line = b""
    # Nothing follows the spec before the kubelet has had an answer, so that chunks do not swallow what comes next.
    while not line.endswith(b"\n"):
        chunk = os.read(_STDIN, 1 << 16)
        if not chunk:
            return
        line += chunk
    spec = decode(line)
    control, answers = os.dup(_STDIN), os.dup(_STDOUT)
    if isinstance(spec, SandboxSpec):
        sandbox.run(spec, control, answers)
    else:
        monitor.run(spec, control, answers)


if __name__ == "__main__":
    main()
