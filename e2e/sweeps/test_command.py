"""`trainer sweep` on `trainer up`, with both versions of the API."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import released_manager as released
from e2e.home import Home, running_home

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]
SCRIPT = """
from report import parameters, report
chosen = parameters(rate=1.0, size=16)
for step in (1, 2, 3):
    loss = (chosen.rate - 3) ** 2 + chosen.size / 1000 + 1 / step
    report(current_step=step, total_steps=3, eval_metrics={"val_loss": loss}, force=True)
"""


@pytest.fixture(autouse=True)
def _serving() -> None:
    """`trainer up` brings the manager."""


@pytest.fixture(scope="module", params=["v2alpha1", "v1alpha1"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster of one version."""
    with running_home(tmp_path_factory.mktemp("home"), "--api-version", request.param) as own:
        if request.param == "v1alpha1":  # Kubeflow Trainer has no runtime without a framework
            node = released.replicated_job("node", ancestor="trainer")
            runtime = released.runtime("plain", node, mlPolicy={"numNodes": 1})
            runtime["metadata"]["labels"] = {"trainer.kubeflow.org/framework": "plain"}
            own.kubectl.kubectl("apply", "-f", "-", stdin=json.dumps(runtime))
        yield own


def test_search(home: Home, tmp_path: Path) -> None:
    """A script is searched from the command line to its best trial, which the other commands know."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    space = ["--param", "rate=uniform(0,6)", "--param", "size=choice(16,32)"]
    options = ["--trials", "5", "--parallel", "2", "--minimize", "val_loss", "--algorithm", "random", "--seed", "1"]

    followed = home.trainer("sweep", str(script), "--name", "search", *space, *options)

    assert followed.returncode == 0, followed.stdout + followed.stderr
    lines = followed.stdout.splitlines()
    assert {line.split()[1] for line in lines if re.match(r"trial \d  Succeeded", line)} == set("12345")
    sweep = json.loads(home.trainer("get", "sweep", "search", "-o", "json").stdout)
    status = sweep["status"]
    assert (status["state"], status["trialCounts"]["succeeded"]) == ("Complete", 5)
    values = {each["number"]: float(each["value"]) for each in status["trials"]}
    best = min(values, key=lambda number: values[number])
    result = status["result"]
    assert (result["trainJobName"], float(result["value"])) == (f"search-trial-{best}", values[best])
    rate, size = (float(each["value"]) for each in result["parameters"])
    assert values[best] == pytest.approx((rate - 3) ** 2 + size / 1000 + 1 / 3)
    at = next(index for index, line in enumerate(lines) if line.startswith("best: "))
    assert lines[at] == f"best: trial {best}  val_loss {result['value']}"

    _, row = home.trainer("sweeps").stdout.splitlines()
    assert re.match(r"search +Complete +\S+ 100% +val_loss ", row)
    (again,) = (line.split() for line in lines if line.startswith("  trainer run "))
    assert home.trainer(*again[1:], "--name", "again").returncode == 0
    assert result["value"] in home.trainer("metrics", "again", "-o", "json").stdout
