"""Starting a shim and talking to it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio.streams.buffered import BufferedByteReceiveStream

from trainer_devcluster.kubelet.shim import reports, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anyio.abc import Process

log = structlog.get_logger(__name__)

_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from shim.__main__ import main; main()"
_COMMAND = (sys.executable, "-I", "-S", "-E", "-X", "utf8", "-c", _BOOTSTRAP, str(Path(__file__).parent))

_CLOSE_TIMEOUT = 5.0
"""Seconds for a shim to kill what it runs and end, before it is killed itself."""
_LONGEST_REPORT = 1 << 16


class ShimProcess:
    """A running shim; made by `run_shim`."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._control = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)

    @property
    def pid(self) -> int:
        """Process ID on the host."""
        return self._process.pid

    async def report(self) -> reports.Report:
        """The next report; a shim that dies without one counts as failed."""
        try:
            line = await self._answers.receive_until(b"\n", _LONGEST_REPORT)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            return reports.Failed("sandbox", "the process that watches over it was killed")
        return reports.decode(line)

    async def signal(self, number: int) -> None:
        """Send a signal to the container's program; SIGKILL ends the container with all its processes."""
        await self._send(b"%d\n" % number)

    async def probe(self, probe: spec.ProbeSpec) -> None:
        """Have the container's monitor carry out a probe; a report answers unless the container ends before."""
        await self._send(spec.encode_probe(probe))

    async def start(self, what: spec.Spec) -> None:
        """Hand over the spec."""
        await self._send(spec.encode(what))

    async def close(self) -> None:
        """Kill what the shim runs, and wait for its end."""
        await self._control.aclose()
        with anyio.move_on_after(_CLOSE_TIMEOUT):
            await self._process.wait()
        if self._process.returncode is None:
            log.warning("killed a shim that did not end by itself", pid=self.pid)
            self._process.kill()
        await self._process.aclose()

    async def _send(self, data: bytes) -> None:
        try:
            await self._control.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            # It has ended; `report` tells how.
            return


@asynccontextmanager
async def run_shim(what: spec.Spec, *, keep: Sequence[int] = ()) -> AsyncIterator[ShimProcess]:
    """Run a shim for as long as the context lasts; leaving it kills everything that the shim has started.

    Args:
        what: what it is to do.
        keep: open descriptors that it inherits under the same numbers.
    """
    with anyio.CancelScope(shield=True):
        # Cancelled half-way, asyncio would lose track of the process.
        process = await anyio.open_process(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            start_new_session=True,
            pass_fds=keep,
        )
    shim = ShimProcess(process)
    try:
        await shim.start(what)
        yield shim
    finally:
        with anyio.CancelScope(shield=True):
            await shim.close()
