"""The seam between kubelet and shim."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.shim import reports, spec


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(
            spec.SandboxSpec(("/proc/1/ns/net",), ("net",), "host", "/sbin/ip", (spec.IpBatch("new", ("link",)),)),
            id="sandbox",
        ),
        pytest.param(
            spec.ContainerSpec(
                ("a", "b"),
                {"A": "\udcff"},
                "/",
                "/log",
                isolated=True,
                join=("/proc/1/ns/net",),
                new_root="/root",
                operations=(spec.FilesystemStep("bind", "/a", "/b", read_only=True),),
                run_as=(1, 2),
            ),
            id="container",
        ),
    ],
)
def test_spec(what: spec.Spec) -> None:
    """What arrives is what was sent, in one line."""
    line = spec.encode(what)
    assert line.count(b"\n") == 1
    assert spec.decode(line) == what


@pytest.mark.parametrize(
    "report",
    [
        reports.SandboxReady(),
        reports.Started(),
        reports.StartFailed("exec", "a\nb"),
        reports.Exited(137, 9),
        reports.Probed(3, success=False, message="a\nb"),
    ],
    ids=lambda report: type(report).__name__,
)
def test_report(report: reports.Report) -> None:
    """What arrives is what was sent, in one line."""
    line = reports.encode(report)
    assert line.count(b"\n") == 1
    assert reports.decode(line) == report


@pytest.mark.parametrize(
    "probe",
    [
        spec.ProbeSpec("tcp", 1, host="10.88.0.2", port=22, number=7),
        spec.ProbeSpec("http", 0.5, host="h", port=80, scheme="https", path="/x", headers=(("A", "b"), ("C", ""))),
        spec.ProbeSpec("exec", 1, command=("sh", "-c", "a\nb")),
    ],
    ids=lambda probe: probe.kind,
)
def test_probe(probe: spec.ProbeSpec) -> None:
    """What arrives is what was sent, in one line that is not taken for a signal."""
    line = spec.encode_probe(probe)
    assert line.count(b"\n") == 1
    assert line.startswith(b"{")
    assert spec.decode_probe(line) == probe


def test_command() -> None:
    """What arrives is what was sent."""
    command = spec.CommandSpec(("sh", "-c", "a\nb"), (0, 1, 2), terminal=True)
    assert spec.decode_command(spec.encode_command(command)) == command
