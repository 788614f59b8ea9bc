"""The outer process of a container: writes its log, passes the kubelet's signals on, reports the end."""

from __future__ import annotations

import os
import selectors
import signal
from dataclasses import dataclass, field

from . import init, linux, probes, processes, reports
from .log_file import ContainerLogWriter
from .spec import ContainerSpec, decode_probe

_CHUNK = 64 * 1024


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
    probing: set[int] = field(default_factory=set)
    """PIDs of processes that carry out probes and are to be reaped."""

    def run(self) -> reports.Report:
        """Start init and wait until it has ended and the log is complete."""
        events, output = self._start_init()
        self.selector.register(self.control, selectors.EVENT_READ, self._on_control)
        self.selector.register(events, selectors.EVENT_READ, self._on_event)
        self.selector.register(output, selectors.EVENT_READ, self._on_output)
        open_ends = {events, output}
        while open_ends:
            for key, _ in self.selector.select():
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
        self.probing -= {pid for pid in self.probing if os.waitpid(pid, os.WNOHANG)[0]}
        if not self.init:
            return
        pid = os.fork()
        if pid == 0:
            probes.answer(decode_probe(line), self.spec, self.init, self.answers)
        if self.spec.isolated:
            # It has left the probe to a child that init adopts: the container's PID namespace, in which this process
            # makes all its children, would not end before they were reaped.
            os.waitpid(pid, 0)
        else:
            self.probing.add(pid)

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
            self.probing.clear()
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
