"""Write the CustomResourceDefinitions of OptimizationJob in config/; a test fails while they are stale.

Run it after a change of the models of sweeps or TrainJobs:

    python -m hack.generate_sweep_crds
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trainer.api.crds import stream_of
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.definitions import definition

_CONFIG: Final = Path(__file__).parents[1] / "config"
FILES: Final[dict[Version, Path]] = {
    "v1alpha1": _CONFIG / "v1alpha1" / "crd" / "optimizationjobs.yaml",
    "v2alpha1": _CONFIG / "crd" / "optimizationjobs.yaml",
}


def main() -> None:
    """Write both."""
    for version, file in FILES.items():
        file.write_text(stream_of([definition(version)]), encoding="utf-8")


if __name__ == "__main__":
    main()
