"""Write the CustomResourceDefinitions in config/; tests fail while they are stale.

Run it after a change of the models of TrainJobs, runtimes or sweeps:

    python -m hack.generate_crds
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trainer.api.crds import stream_of
from trainer.v1alpha1.crds import crds_yaml
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.definitions import definition

_CONFIG: Final = Path(__file__).parents[1] / "config"
DIRECTORIES: Final[dict[Version, Path]] = {
    "v1alpha1": _CONFIG / "v1alpha1" / "crd",
    "v2alpha1": _CONFIG / "crd",
}


def main() -> None:
    """Write those of both versions."""
    for version, directory in DIRECTORIES.items():
        (directory / "trainer.kubeflow.org.yaml").write_text(crds_yaml(version), encoding="utf-8")
        (directory / "optimizationjobs.yaml").write_text(stream_of([definition(version)]), encoding="utf-8")


if __name__ == "__main__":
    main()
