"""Builds at once and interrupted ones, on a storage of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.processes import with_argument
from e2e.waiting import until
from hack.cache import cache_directory
from hack.images.bases import debian_bases
from hack.images.storage import storage
from hack.release.settings import ROOT

BUILD = """\
import sys
from pathlib import Path
from hack.images.bases import debian_bases
from hack.images.storage import storage
from hack.release.settings import ROOT

with storage() as ours:
    base, image = debian_bases(ours).final, "localhost/built"
    arguments = ["--pull-never", f"--build-arg=BASE={base}", f"--tag={image}"]
    ours.build(*arguments, context=Path(sys.argv[1]), timestamp=0)
    ours.remove(image)
"""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage with nothing in it, beside the roots of Debian that there are."""
    cache = tmp_path / "cache" / "trainer-ci"
    cache.mkdir(parents=True)
    roots = cache_directory() / "debian"
    roots.mkdir(parents=True, exist_ok=True)
    (cache / "debian").symlink_to(roots)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))


def started(directory: Path, name: str, step: str) -> subprocess.Popen[str]:
    """Begin to build an image with one step."""
    context = directory / name
    context.mkdir()
    (context / "Dockerfile").write_text(f"ARG BASE\nFROM ${{BASE}}\nRUN {step}\n")
    command = [sys.executable, "-c", BUILD, str(context)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_interrupted(tmp_path: Path) -> None:
    """A build waits for another one; when that is killed, its steps end, and nothing of it is in the way."""
    marker = str(os.getpid() + 2_000_000)
    with started(tmp_path, "killed", f"sleep {marker}") as killed:
        try:
            until(lambda: with_argument(marker), "it builds", timeout=120)
            waiting = started(tmp_path, "waiting", "true")
            assert waiting.stderr is not None
            first = waiting.stderr.readline()
        finally:
            killed.kill()
    until(lambda: not with_argument(marker), "its steps have ended")
    _, said = waiting.communicate(timeout=300)
    assert waiting.returncode == 0, first + said
    assert first == f"waiting for another process to release {cache_directory() / 'images' / 'storage'}\n"
    with storage() as ours:
        bases = debian_bases(ours)
        assert ours.buildah("containers", "--all", "--quiet") == ""
        images = ours.buildah("images", "--all", "--format={{.Name}}:{{.Tag}}").splitlines()
        assert {*images} == {bases.final, bases.build}
