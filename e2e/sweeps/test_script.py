"""`trainer sweep SCRIPT` and `trainer.sweep` on `trainer up`, with both versions of the API."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.home import Home, running_home
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]
SCRIPT = """\
import sys
from report import parameters, report

chosen = parameters(x=0.0, kind="none")
assert float(sys.argv[1]) == chosen.x, (sys.argv, chosen)
if chosen.kind == "broken":
    raise ValueError("no data")
report(current_step=1, total_steps=1, eval_metrics={"loss": (chosen.x - 3) ** 2})
"""
PYTHON = """\
import trainer

def fit(x, flag, far):
    from report import report
    assert (type(x), type(flag)) == (int, bool)
    report(current_step=1, total_steps=1, eval_metrics={"loss": (x - far) ** 2})

sweep = trainer.sweep(
    fit, {"x": trainer.integers(1, 4), "flag": [True, False]}, arguments={"far": 3}, metric="loss", trials=4,
    parallel=4, algorithm="random", seed=1, name="function", runtime="jax-distributed",
)
best = sweep.wait(timeout=100).best()
trials = sweep.trials()
assert best.value == min(each.value for each in trials) == min((each.parameters["x"] - 3) ** 2 for each in trials)
print(best.name, len(trials), sweep.status().state)
"""


ONE_VERSION = pytest.mark.parametrize("home", ["v2alpha1"], indirect=True)
"""That of which a runtime does not start failed pods again with growing pauses."""


@pytest.fixture(scope="module", params=["v2alpha1", "v1alpha1"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster of one version."""
    with running_home(tmp_path_factory.mktemp("home"), "--api-version", request.param) as own:
        yield own


@ONE_VERSION
def test_script(home: Home, tmp_path: Path) -> None:
    """Trials run with their parameters, a failing one says why, and the best one is the end; the code goes with it."""
    (tmp_path / "train.py").write_text(SCRIPT)
    space = ["--param", "x=uniform(0,6)", "--param", "kind=choice(fine,broken)", "--minimize", "loss"]
    search = ["--algorithm", "random", "--seed", "1", "--trials", "4", "--parallel", "2", "--name", "script"]

    result = home.trainer("sweep", str(tmp_path / "train.py"), *space, *search, "--", "{x}")

    assert result.returncode == 0, result.stdout + result.stderr
    values = {number: float(value) for number, value in re.findall(r"trial (\d)  Succeeded  loss (\S+)", result.stdout)}
    failed = re.findall(r"trial (\d)  Failed .*ValueError: no data", result.stdout)
    assert len(values) + len(failed) == 4, result.stdout
    assert failed
    best = min(values, key=lambda number: values[number])
    assert re.search(rf"^best: trial {best}  loss ", result.stdout, re.MULTILINE)
    assert re.search(r"^  trainer run .*train.py .* -- \d\.\d+$", result.stdout, re.MULTILINE)
    assert home.trainer("sweeps").stdout.splitlines()[1].startswith("script  Complete")
    assert "trial 1" in home.trainer("get", "sweep", "script").stdout
    assert home.trainer("explain", "script").returncode == 0
    (code,) = (name for name in _config_maps(home) if name.startswith("script-code-"))
    assert home.trainer("delete", "sweep/script").returncode == 0
    until(lambda: code not in _config_maps(home), "the code of the deleted sweep is gone")


def test_function(home: Home, tmp_path: Path) -> None:
    """A function gets its parameters with their types, and the best trial is the least value."""
    (tmp_path / "notebook.py").write_text(PYTHON)

    result = home.run("python", str(tmp_path / "notebook.py"))

    assert result.returncode == 0, result.stdout + result.stderr
    assert re.fullmatch(r"function-trial-[1-4] 4 Complete\n", result.stdout)


def _config_maps(home: Home) -> list[str]:
    return [name.partition("/")[2] for name in home.kubectl.kubectl("get", "configmaps", "-o", "name").stdout.split()]
