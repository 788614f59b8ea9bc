"""The examples as TrainJobs of v1alpha1, applied with kubectl, on `trainer up --api-version v1alpha1`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own cluster"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A laptop with a cluster that serves v1alpha1."""
    own = Home(tmp_path_factory.mktemp("home"))
    up = own.trainer("up", "--api-version", "v1alpha1")
    assert up.returncode == 0, up.stdout + up.stderr
    yield own
    own.trainer("down", "--delete")


@pytest.mark.parametrize("example", ["jax-digits", "torch-digits", "xgboost-digits"])
def test_converted_example(home: Home, example: str) -> None:
    """Converted it trains on two nodes, on a runtime of the released Trainer, to more than 90 % accuracy."""
    converted = home.trainer("convert", "--api-version", "v1alpha1", "-f", str(EXAMPLES / example / "trainjob.yaml"))
    assert (converted.returncode, converted.stderr) == (0, "")
    file = home.state / f"{example}.yaml"
    # The released runtimes have no working directory.
    file.write_text(converted.stdout.replace("- train.py\n", "- /workspace/train.py\n"))
    kubectl = "kubectl", "--kubeconfig", str(home.kubeconfig)
    applied = home.run(*kubectl, "apply", "-f", str(file))
    assert applied.returncode == 0, applied.stderr
    waited = home.run(*kubectl, "wait", f"trainjob/{example}", "--for=condition=Complete", "--timeout=110s")
    assert waited.returncode == 0, waited.stderr + home.trainer("logs", example, "--all").stdout
    (accuracy,) = re.findall(r"^test accuracy: ([\d.]+) %$", home.trainer("logs", example).stdout, re.MULTILINE)
    assert float(accuracy) > 90
    assert home.trainer("get", example).stdout.splitlines()[1].split()[:2] == [example, "Complete"]
