"""The outer process of a container: writes its log, passes the kubelet's signals on, reports the end."""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from . import commands, init, linux, probes, processes, reports
from .log_file import ContainerLogWriter
from .spec import LONGEST_COMMAND, ContainerSpec, decode_command, decode_probe

_CHUNK = 64 * 1024
_DESCRIPTORS = 4
"""That come with a command: a socket for reports and three streams."""


def run(spec: ContainerSpec, control: int, answers: int) -> None:
    """Run a container to its end.

    Args:
        spec: what to run.
        control: lines with signal numbers or probes from the kubelet; when it closes, everything is killed.
        answers: reports for the kubelet.
    """
    linux.set_process_name("pod-monitor")
    try:
        log = ContainerLogWriter(spec.log_file, spec.log_limits)
    except OSError as error:
        reports.send(answers, reports.StartFailed.because_of("log", error))
        return
    try:
        linux.join(spec.join)
        if spec.isolated:
            linux.make(("pid",))
        else:
            linux.adopt_orphans()
    except OSError as error:
        reports.send(answers, reports.StartFailed.because_of("sandbox", error))
        return
    reports.send(answers, _Watch(spec, control, answers, log).run())


@dataclass(slots=True)
class _Watch:
    """The life of one container as seen from outside."""

    spec: ContainerSpec
    control: int
    answers: int
    log: ContainerLogWriter
    init: int = 0
    outcome: reports.Report | None = None
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    pending: dict[int, bytes] = field(default_factory=dict)
    helpers: set[int] = field(default_factory=set)
    """PIDs of processes that carry out probes and commands and are to be reaped."""

    def run(self) -> reports.Report:
        """Start init and wait until it has ended and the log is complete."""
        requests = self._open_requests()
        events, output = self._start_init()
        self.selector.register(self.control, selectors.EVENT_READ, self._on_control)
        self.selector.register(events, selectors.EVENT_READ, self._on_event)
        self.selector.register(output, selectors.EVENT_READ, self._on_output)
        open_ends = {events, output}
        while open_ends:
            for key, _ in self.selector.select():
                if requests is not None and key.fileobj is requests:
                    self._on_command(requests)
                    continue
                data = os.read(key.fd, _CHUNK)
                key.data(data)
                if not data:
                    self.selector.unregister(key.fd)
                    open_ends.discard(key.fd)
        assert self.outcome is not None
        return self.outcome

    def _start_init(self) -> tuple[int, int]:
        events_out, events_in = os.pipe()
        output_out, output_in = os.pipe()
        go_out, go_in = os.pipe()
        self.init = os.fork()
        if self.init == 0:
            for descriptor in (events_out, output_out, go_in):
                os.close(descriptor)
            init.run(self.spec, output_in, events_in, go_out)
        for descriptor in (events_in, output_in, go_out):
            os.close(descriptor)
        os.write(go_in, b"!")
        os.close(go_in)
        return events_out, output_out

    def _on_control(self, data: bytes) -> None:
        if not data:
            self._signal(signal.SIGKILL)
            return
        for line in self._lines(self.control, data):
            if line.startswith(b"{"):
                self._probe(line)
            else:
                self._signal(int(line))

    def _probe(self, line: bytes) -> None:
        if self.init:
            self._fork(partial(probes.answer, decode_probe(line), self.spec, self.init, self.answers))

    def _open_requests(self) -> socket.socket | None:
        if self.spec.commands < 0:
            return None
        # The container's program has no business with it.
        os.set_inheritable(self.spec.commands, False)
        requests = socket.socket(fileno=self.spec.commands)
        self.selector.register(requests, selectors.EVENT_READ)
        return requests

    def _on_command(self, requests: socket.socket) -> None:
        """Have a command carried out; when it cannot be any more, its channel closes without a report."""
        received = socket.recv_fds(requests, LONGEST_COMMAND, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        text, descriptors = received[0], received[1]
        if not text:
            self.selector.unregister(requests)
        elif self.init:
            self._fork(partial(commands.serve, decode_command(text), self.spec, self.init, descriptors))
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork(self, work: Callable[[], NoReturn]) -> None:
        self.helpers -= {pid for pid in self.helpers if os.waitpid(pid, os.WNOHANG)[0]}
        pid = os.fork()
        if pid == 0:
            work()
        if self.spec.isolated:
            # See `commands.step_aside`.
            os.waitpid(pid, 0)
        else:
            self.helpers.add(pid)

    def _on_event(self, data: bytes) -> None:
        if not data:
            self._on_init_ended()
            return
        for line in self._lines(-1, data):
            report = reports.decode(line)
            if isinstance(report, reports.Started):
                reports.send(self.answers, report)
            else:
                self.outcome = report

    def _on_init_ended(self) -> None:
        _, status = os.waitpid(self.init, 0)
        self.init = 0
        if not self.spec.isolated:
            processes.kill_descendants()
            self.helpers.clear()
        if self.outcome is None:
            self.outcome = reports.from_wait_status(status)

    def _on_output(self, data: bytes) -> None:
        try:
            if data:
                self.log.feed(data)
            else:
                self.log.close()
        except OSError as error:
            self.outcome = reports.StartFailed.because_of("log", error)
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.init:
            os.kill(self.init, number)

    def _lines(self, source: int, data: bytes) -> list[bytes]:
        *lines, self.pending[source] = (self.pending.get(source, b"") + data).split(b"\n")
        return lines
