"""A claim keeps what a training writes into TRAINER_CHECKPOINT_DIR, with both versions of the API."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.home import Home, running_home
from e2e.prerequisites import needs_module
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
    needs_module("torch"),
]
SCRIPT = """\
import os, pathlib, sys, time
directory = pathlib.Path(os.environ["TRAINER_CHECKPOINT_DIR"])
found = sorted(path.name for path in directory.glob("step-*"))
(directory / f"step-{len(found)}").touch()
print("found", found, flush=True)
time.sleep(0 if found else float(sys.argv[1]))
"""


@pytest.fixture(scope="module", params=["v2alpha1", "v1alpha1"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster of one version."""
    with running_home(tmp_path_factory.mktemp("home"), "--api-version", request.param) as own:
        yield own


def run(home: Home, folder: Path, *, seconds: int) -> str:
    """Submit a training that sleeps so long where it finds nothing, and return the warnings."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    options = ("--name", "keeps", "--runtime", "torch-distributed", "--checkpoints", "data/runs", "--no-follow")
    result = home.trainer("run", str(script), *options, "--", str(seconds))
    assert result.returncode == 0, result.stderr
    return result.stderr


def wait_for(home: Home, line: str) -> None:
    until(lambda: line in home.trainer("logs", "keeps").stdout, lambda: home.trainer("explain", "keeps").stdout)


def directories(home: Home) -> dict[str, list[str]]:
    """What the claim has, by directory."""
    claim = home.state / "trainer" / "data" / "claims" / "default" / "data"
    return {path.name: sorted(each.name for each in path.iterdir()) for path in (claim / "runs").iterdir()}


def test_claim(home: Home, tmp_path: Path) -> None:
    """A training finds its files after a suspension, and they stay until somebody asks for their removal."""
    warnings = run(home, tmp_path, seconds=600)
    assert "has no PersistentVolumeClaim data" in warnings
    remedy = "create the claim data, which is to keep the checkpoints, in namespace default"
    until(lambda: remedy in home.trainer("explain", "keeps").stdout, lambda: home.trainer("explain", "keeps").stdout)
    claim = shlex.split(warnings.partition(" makes it: ")[2])[1]
    home.kubectl.kubectl("create", "-f", "-", stdin=claim)
    wait_for(home, "found []")
    refused = home.trainer("delete", "keeps", "--checkpoints")
    assert (refused.returncode, "pods may write there: keeps-node-0-0-" in refused.stderr) == (1, True), refused.stderr

    home.trainer("suspend", "keeps")
    until(lambda: not home.kubectl.list("pods"), "the pods of the suspended training are gone")
    home.trainer("resume", "keeps")
    wait_for(home, "found ['step-0']")
    until(lambda: "Complete" in home.trainer("get", "keeps").stdout, lambda: home.trainer("explain", "keeps").stdout)
    ((first, steps),) = directories(home).items()
    assert steps == ["step-0", "step-1"]
    deleted = home.trainer("delete", "keeps")
    assert deleted.stderr == f"note: its checkpoints are kept in directory runs/{first} of claim data\n"

    until(lambda: not home.kubectl.list("pods"), "the pods of the deleted training are gone")
    assert run(home, tmp_path, seconds=0) == ""
    wait_for(home, "found []")
    until(lambda: "Complete" in home.trainer("get", "keeps").stdout, lambda: home.trainer("explain", "keeps").stdout)
    assert len(directories(home)) == 2
    removed = home.trainer("delete", "keeps", "--checkpoints")
    assert (removed.returncode, removed.stderr) == (0, "")
    assert directories(home) == {first: steps}
