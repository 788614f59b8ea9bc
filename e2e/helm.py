"""Helm itself, from the package helm-python-sdk; in a process of its own, since it brings Go's runtime with it.

python -m e2e.helm install|upgrade|uninstall KUBECONFIG NAMESPACE RELEASE [CHART VALUES]
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from e2e.kubectl import Kubectl

CHART = Path(__file__).parents[1] / "charts" / "kubeflow-trainer"
IS_INSTALLED = importlib.util.find_spec("helm_python") is not None


def helm(kubectl: Kubectl, action: str, release: str, chart: Path = CHART, **values: Any) -> None:
    """`helm install`, `upgrade` or `uninstall` in the namespace of a kubectl, hooks included, to its end."""
    arguments = [action, str(kubectl.kubeconfig), kubectl.namespace, release, str(chart), json.dumps(values)]
    command = [sys.executable, "-m", "e2e.helm", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150, cwd=CHART.parents[1])
    assert result.returncode == 0, result.stderr


def _main(action: str, kubeconfig: str, namespace: str, release: str, chart: str, values: str) -> None:
    helm_python = importlib.import_module("helm_python")
    with helm_python.Config(kubeconfig_path=kubeconfig, namespace=namespace) as config:
        if action == "install":
            config.install(chart, release, json.loads(values), create_namespace=True, timeout=120)
        elif action == "upgrade":
            config.upgrade(chart, release, json.loads(values), timeout=120)
        else:
            config.uninstall(release, timeout=120)


if __name__ == "__main__":
    _main(*sys.argv[1:])
