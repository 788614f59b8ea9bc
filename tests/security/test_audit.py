"""`make audit`: an audit that did not take place is no good news."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hack import audit

FINE: dict[str, Any] = {"name": "anyio", "version": "4.16.0", "vulns": []}
KNOWN: dict[str, Any] = {
    "name": "aiohttp",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1", "2.0"], "description": "d"}],
}
UNFIXED: dict[str, Any] = KNOWN | {"vulns": [{"id": "PYSEC-2", "aliases": [], "fix_versions": []}]}
SKIPPED: dict[str, Any] = {"name": "rich", "skip_reason": "Dependency not found: rich (15.0.0)"}


def answering(output: str, problem: str = "") -> Callable[..., subprocess.CompletedProcess[str]]:
    """What pip-audit prints."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "pip_audit"]
        assert str(audit.CONSTRAINTS) in command
        return subprocess.CompletedProcess(command, 1, output, problem)

    return run


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        pytest.param([FINE], 0, "1 packages audited, 0 known vulnerabilities", id="nothing-known"),
        pytest.param([FINE, KNOWN], 1, "aiohttp 1.0: PYSEC-1, CVE-1; fixed in 1.1, 2.0", id="vulnerable"),
        pytest.param([UNFIXED], 1, "aiohttp 1.0: PYSEC-2; fixed in no release yet", id="not-fixed-yet"),
        pytest.param([FINE, SKIPPED], 2, "error: 1 of 2 packages could not be audited: rich: ", id="skipped"),
        pytest.param([KNOWN, SKIPPED], 2, "aiohttp 1.0: PYSEC-1", id="vulnerable-and-skipped"),
        pytest.param([], 2, "error: 0 of 0 packages could not be audited: there are none", id="no-packages"),
    ],
)
def test_result(
    packages: list[Any],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only where every package was asked for, and nothing was found, all is well."""
    monkeypatch.setattr(subprocess, "run", answering(json.dumps({"dependencies": packages})))
    assert audit.main([]) == status
    assert said in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("problem", "said", "remedy"),
    [
        pytest.param("x\nError: down", "nothing was audited: Error: down", "--service osv", id="off"),
        pytest.param("", "nothing was audited: pip-audit ended with exit code 1", "--service osv", id="silent"),
        pytest.param("/bin/python: No module named pip_audit", "", "`make audit` installs it", id="missing"),
    ],
)
def test_audit_that_did_not_take_place(
    problem: str, said: str, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, with what can be done."""
    monkeypatch.setattr(subprocess, "run", answering("", problem))
    assert audit.main([]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert remedy in errors
    assert ("--service" in errors) == ("--service" in remedy)


def test_every_package_is_pinned() -> None:
    """What is audited is what is installed: one exact version of each package."""
    lines = [line for line in Path(audit.CONSTRAINTS).read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if line.count("==") != 1] == []
    names = [line.partition("==")[0].lower().replace("_", "-") for line in lines]
    assert [name for name in names if names.count(name) > 1] == []
