"""`python -m benchmarks.following.log_server`: logs over TLS, as many lines a second as its argument says.

It answers every request with an endless log in the form in which kube-apiserver does: HTTP/1.1, chunked. Everything
that can be is encoded beforehand and shared by all streams, and sockets are written to directly, so that it needs less
than the manager; no framework of this language would do.
"""

from __future__ import annotations

import random
import selectors
import socket
import ssl
import sys
import time
from contextlib import suppress
from typing import Any

import msgspec

from benchmarks.following.load import MESSAGE_TOTAL, Load, Mode
from benchmarks.worker import read_command, write_answer
from trainer.api.progress_tags import TAG

TICK = 0.05
"""Seconds between two writes to one stream."""

SLICES = 25
"""Parts into which the streams are divided, which get their turns within a tick one after the other."""

FLOOD_LINES = 128
"""Lines in one write of a flood."""

_HEAD = (
    b"HTTP/1.1 200 OK\r\nAudit-Id: 6d2a8a3c-0f0b-4b51-9a3f-9a6f3c1f0c11\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: text/plain\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_TEXT = b"step 123456 loss 2.34567 lr 3.0e-05 tokens/s 123456 gpu mem 71.2GB\n"
"""With its timestamp a line of 100 bytes."""


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Stream:
    """One connection."""

    def __init__(self, connected: socket.socket, context: ssl.SSLContext) -> None:
        self.socket = connected
        self.lines = 0
        self.is_open = False
        """Whether the log has begun."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._has_shaken_hands = False
        self._unsent = b""

    def receive(self) -> bool:
        """Take what has come; whether the connection goes on."""
        received = self.socket.recv(65536)
        self._incoming.write(received)
        try:
            if not self._has_shaken_hands:
                self._tls.do_handshake()
                self._has_shaken_hands = True
            if self._tls.read(65536) and not self.is_open:
                self.is_open = True
                self._tls.write(_HEAD)
        except ssl.SSLWantReadError:
            pass
        self.flush()
        return bool(received)

    def flush(self) -> bool:
        """Send what waits; whether nothing waits any more."""
        self._unsent += self._outgoing.read()
        if self._unsent:
            with suppress(BlockingIOError):
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        return not self._unsent

    def send(self, records: list[bytes]) -> None:
        """Send these, each in a record of its own."""
        for record in records:
            self._tls.write(record)
        self.flush()


class LogServer:
    """Serves until its standard input ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load = Load()
        self._streams: list[Stream] = []
        self._sent = 0
        self._held_up = 0
        self._latest = 0.0
        self._has_begun = False
        self._is_over = False

    def run(self) -> None:
        """Serve."""
        due, part = time.monotonic(), 0
        while not self._is_over:
            is_flood = self._load.mode is Mode.FLOOD
            self._handle(0.001 if is_flood else max(due - time.monotonic(), 0))
            now = time.monotonic()
            if is_flood:
                self._emit(self._streams, FLOOD_LINES)
            elif now >= due:
                self._latest = max(self._latest, now - due)
                self._emit(self._streams[part::SLICES], round(self._load.lines_per_second * TICK))
                part = (part + 1) % SLICES
                due += TICK / SLICES

    def _handle(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            if key.fileobj is sys.stdin:
                self._obey()
            elif key.fileobj is self._listener:
                self._accept()
            else:
                self._receive(key.data)

    def _obey(self) -> None:
        line = sys.stdin.readline()
        if not line:
            self._is_over = True
            return
        name, arguments = read_command(line)
        write_answer(self._start(**arguments) if name == "start" else self._report())

    def _start(self, load: object, certificate: str) -> dict[str, Any]:
        self._load = msgspec.convert(load, Load)
        self._context.load_cert_chain(certificate)
        return {"port": self._listener.getsockname()[1]}

    def _report(self) -> dict[str, Any]:
        """What has been sent since the last report."""
        report = {"lines": self._sent, "held_up": self._held_up, "latest": self._latest}
        self._sent = self._held_up = 0
        self._latest = 0.0
        return report

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                connected, _ = self._listener.accept()
                connected.setblocking(False)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stream = Stream(connected, self._context)
                # Messages of different logs come at different moments.
                stream.lines = random.randrange(self._load.lines_per_message)  # noqa: S311 - no secret
                self._selector.register(connected, selectors.EVENT_READ, stream)

    def _receive(self, stream: Stream) -> None:
        was_open = stream.is_open
        try:
            goes_on = stream.receive()
        except OSError:
            goes_on = False
        if not goes_on:
            self._drop(stream)
        elif stream.is_open and not was_open:
            self._streams.append(stream)

    def _drop(self, stream: Stream) -> None:
        self._selector.unregister(stream.socket)
        stream.socket.close()
        if stream in self._streams:
            self._streams.remove(stream)

    def _emit(self, streams: list[Stream], count: int) -> None:
        if not self._has_begun:
            # The cost of opening the last streams would depend on the lines of the first.
            self._has_begun = len(self._streams) >= self._load.jobs
            return
        lines = self._lines(count)
        ordinary = self._records(lines)
        for stream in list(streams):
            try:
                if not stream.flush():
                    self._held_up += 1
                    continue
                before, stream.lines = stream.lines, stream.lines + count
                has_message = before // self._load.lines_per_message < stream.lines // self._load.lines_per_message
                stream.send(self._records([*lines[:-1], self._message(lines[-1])]) if has_message else ordinary)
                self._sent += count
            except OSError:
                self._drop(stream)

    def _records(self, lines: list[bytes]) -> list[bytes]:
        if self._load.mode is Mode.LINES:
            return [_chunk(line) for line in lines]
        return [_chunk(b"".join(lines))]

    def _lines(self, count: int) -> list[bytes]:
        nanoseconds = time.time_ns()
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 10**9)).encode()
        first = min(nanoseconds % 10**9, 10**9 - count)
        return [b"%b.%09dZ %b" % (seconds, first + number, _TEXT) for number in range(count)]

    def _message(self, line: bytes) -> bytes:
        step = self._load.milliseconds()
        body = {
            "currentStep": step,
            "totalSteps": MESSAGE_TOTAL,
            "trainMetrics": {"loss": 2.34567, "learning_rate": 3e-05, "tokens_per_second": step % 1000},
        }
        return line.partition(b" ")[0] + b" " + TAG.encode() + b" " + msgspec.json.encode(body) + b"\n"


if __name__ == "__main__":
    LogServer().run()
