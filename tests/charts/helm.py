"""Helm itself, from the package helm-python-sdk; in a process of its own, since it brings Go's runtime with it.

python -m tests.charts.helm < requests.json
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainer.kube.objects import Object

CHART = Path(__file__).parents[2] / "charts" / "kubeflow-trainer"
RELEASE = "training"
NAMESPACE = "ml-platform"

needs_helm = pytest.mark.skipif(
    importlib.util.find_spec("helm_python") is None,
    reason="helm-python-sdk is not installed, so the chart is not rendered",
)


class HelmError(Exception):
    """What Helm says about values or templates."""


def rendered(*values: Object) -> list[list[Object]]:
    """The objects of a release, hooks included, for each of several values.

    Raises:
        HelmError: Helm refuses one of them.
    """
    return [
        [obj for name, text in texts.items() if name.endswith(".yaml") for obj in _documents(name, text)]
        for texts in _run(values)
    ]


def _documents(name: str, text: str) -> list[Object]:
    # Definitions are large, and each is one line of JSON.
    if name.endswith("/crds.yaml"):
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]


def findings() -> list[str]:
    """Errors and warnings of `helm lint`."""
    found: list[str] = _run(())
    return found


def _run(values: tuple[Object, ...]) -> list[Any]:
    command = [sys.executable, "-m", "tests.charts.helm"]
    result = subprocess.run(
        command, input=json.dumps(values), capture_output=True, text=True, check=False, cwd=CHART.parents[1]
    )
    if result.returncode != 0:
        raise HelmError(result.stderr.strip())
    found: list[Any] = json.loads(result.stdout)
    return found


def _main() -> None:
    import helm_python

    requests = json.load(sys.stdin)
    answer: list[Any]
    try:
        if requests:
            with helm_python.Chart.load(CHART) as chart:
                answer = [chart.render(values, name=RELEASE, namespace=NAMESPACE) for values in requests]
        else:
            # 2 and more are warnings and errors.
            messages = helm_python.lint(CHART, strict=True)["messages"]
            answer = [message["error"] for message in messages if message["severity"] >= 2]
    except helm_python.HelmError as error:
        sys.exit(str(error))
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _main()
