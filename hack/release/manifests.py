"""Manifests for `kubectl apply --server-side -f`, with the images of the release."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.oci.listing import Image
from hack.release.images import INITIALIZER, MANAGER, NAMES, TRANSFORMERS
from hack.release.settings import Release


@dataclass(frozen=True)
class Overlay:
    """A directory of config, as a file."""

    directory: str
    namespace: str = ""
    """In which it is instead of its own one, where that is given."""
    has_installer: bool = False
    """Whether it has the Job that applies the runtimes, which names their images."""


INSTALLATIONS = {
    "v2alpha1": Overlay("default", has_installer=True),
    "v1alpha1": Overlay("v1alpha1/default", has_installer=True),
}
"""What installs everything, by the version of the API."""
ADDITIONS = {
    "v2alpha1": {
        "admissionpolicy": Overlay("admissionpolicy"),
        "dashboard": Overlay("dashboard"),
        "dashboard-impersonation": Overlay("dashboard-impersonation"),
        "grafana": Overlay("grafana"),
        "history": Overlay("history"),
        "history-postgresql": Overlay("history-postgresql"),
        "networkpolicy": Overlay("networkpolicy"),
        "prometheus": Overlay("prometheus"),
        "v1-jobs": Overlay("v1"),
    },
    "v1alpha1": {
        "admissionpolicy-v1alpha1": Overlay("v1alpha1/admissionpolicy"),
        "dashboard-v1alpha1": Overlay("dashboard", "kubeflow-system"),
        "dashboard-impersonation-v1alpha1": Overlay("dashboard-impersonation", "kubeflow-system"),
        "grafana-v1alpha1": Overlay("v1alpha1/grafana"),
        "history-v1alpha1": Overlay("history", "kubeflow-system"),
        "history-postgresql-v1alpha1": Overlay("history-postgresql", "kubeflow-system"),
        "networkpolicy-v1alpha1": Overlay("v1alpha1/networkpolicy"),
        "prometheus-v1alpha1": Overlay("v1alpha1/prometheus"),
        "v1-jobs-v1alpha1": Overlay("v1alpha1/v1"),
    },
}
"""What is applied besides, by the version of the API and the name of the file."""
_RUNTIMES_JOB = "trainer-runtimes"


def write(release: Release, tree: Path, images: Iterable[Image], output: Path) -> tuple[Path, ...]:
    """Write `install-VERSION.yaml` for each version of the API, and a file for each addition.

    An image whose digest is not known has the version as its tag.
    """
    references = image_references(release, images)
    overlays = {f"install-{version}": overlay for version, overlay in INSTALLATIONS.items()}
    for additions in ADDITIONS.values():
        overlays |= additions
    written = []
    for name, overlay in overlays.items():
        path = output / f"{name}.yaml"
        header = f"# {MANAGER} {release.version}: kubectl apply --server-side -f {path.name}\n"
        path.write_text(header + rendered(tree, name, overlay, references), encoding="utf-8")
        written.append(path)
    return tuple(written)


def image_references(release: Release, images: Iterable[Image]) -> dict[str, str]:
    """Give what follows the registry's name of each image: tag, and digest where it is known."""
    digests = {image.name: f"@{image.digest}" for image in images}
    return {name: f"{release.registry}/{name}:{release.version}{digests.get(name, '')}" for name in NAMES}


def rendered(tree: Path, name: str, overlay: Overlay, references: Mapping[str, str]) -> str:
    """Give what kubectl makes of a directory of config, with these images, as YAML."""
    directory = tree / "build" / "release" / name
    directory.mkdir(parents=True, exist_ok=True)
    kustomization: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"../../../config/{overlay.directory}"],
        "images": [_replacement(MANAGER, references[MANAGER])],
    }
    if overlay.namespace:
        kustomization["namespace"] = overlay.namespace
    if overlay.has_installer:
        kustomization["patches"] = [_images_of_runtimes(references)]
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
    command: list[str | Path] = [Path(sys.executable).parent / "kubectl", "kustomize", directory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"config/{overlay.directory} could not be rendered: {done.stderr}")
    return done.stdout


def _images_of_runtimes(references: Mapping[str, str]) -> dict[str, Any]:
    variables = {"TRAINER_INITIALIZER_IMAGE": INITIALIZER, "TRAINER_TRANSFORMERS_IMAGE": TRANSFORMERS}
    # A list of variables is merged by their names.
    env = [{"name": variable, "value": references[image]} for variable, image in variables.items()]
    pod = {"containers": [{"name": "install", "env": env}]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _RUNTIMES_JOB},
        "spec": {"template": {"spec": pod}},
    }
    return {"target": {"kind": "Job", "name": _RUNTIMES_JOB}, "patch": yaml.safe_dump(job)}


def _replacement(name: str, reference: str) -> dict[str, str]:
    repository, _, rest = reference.rpartition("/")
    tagged, _, digest = rest.partition("@")
    tag = tagged.partition(":")[2]
    replacement = {"name": name, "newName": f"{repository}/{name}", "newTag": tag}
    return replacement | ({"digest": digest} if digest else {})
