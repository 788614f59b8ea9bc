"""What kubectl makes of the directories of config/."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path

import yaml

from trainer.kube.objects import Object

CONFIG = Path(__file__).parents[2] / "config"
OVERLAYS = sorted(str(file.parent.relative_to(CONFIG)) for file in CONFIG.rglob("kustomization.yaml"))
"""All that can be given to `kubectl apply -k`."""
INSTALLED = ("default", "dashboard", "history", "admissionpolicy", "networkpolicy", "prometheus", "grafana", "samples")
"""What people apply: everything, and what is optional besides."""
V1ALPHA1 = "v1alpha1/default"
"""What people apply for the version of Kubeflow Trainer (Go)."""


def rendered(overlay: str) -> list[Object]:
    """The objects of `kubectl kustomize config/<overlay>`, each call with its own."""
    return deepcopy(kustomize(CONFIG / overlay))


@cache
def kustomize(directory: Path) -> list[Object]:
    """The objects of `kubectl kustomize <directory>`."""
    command: list[str | Path] = [Path(sys.executable).parent / "kubectl", "kustomize", directory]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    # kustomize tells on standard error of fields that it will not know any more.
    assert result.stderr == ""
    return [obj for obj in yaml.load_all(result.stdout, yaml.CSafeLoader) if obj]


def of_kind(objects: Iterable[Object], *kinds: str) -> list[Object]:
    """Those of some kinds."""
    return [obj for obj in objects if obj["kind"] in kinds]


def pod_templates(objects: Iterable[Object]) -> Iterator[tuple[Object, Object]]:
    """The objects that make pods of the manager's image, each with its template."""
    for obj in of_kind(objects, "Deployment", "Job"):
        yield obj, obj["spec"]["template"]
