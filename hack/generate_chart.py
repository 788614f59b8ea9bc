"""Write what follows from config/ and from the code in charts/kubeflow-trainer; a test fails while it does not.

Run it after a change of config/, of the CRDs, of the configuration or of values.yaml:

    python -m hack.generate_chart
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from hack.chart import dashboard, history, monitoring, v1_jobs
from hack.chart.manifests import OVERLAYS, definitions, templates
from hack.chart.values_schema import values_schema

CHART = Path(__file__).parents[1] / "charts" / "kubeflow-trainer"
_HEADER = "{{/* Written by python -m hack.generate_chart from config/%s. */}}\n"


def files() -> Iterator[tuple[Path, str]]:
    """Each file, with what stands in it."""
    for version, overlay in OVERLAYS.items():
        yield CHART / "files" / "crds" / f"{version}.yaml", definitions(overlay)
        for name, text in templates(version).items():
            yield CHART / "templates" / version / name, _HEADER % overlay + text
    yield CHART / "templates" / "dashboard.yaml", _HEADER % dashboard.OVERLAY + dashboard.dashboard()
    yield CHART / "files" / "crds" / "v1-jobs.yaml", definitions(v1_jobs.OVERLAYS["v2alpha1"])
    yield CHART / "templates" / "v1-jobs.yaml", _HEADER % v1_jobs.OVERLAYS["v2alpha1"] + v1_jobs.v1_jobs()
    yield CHART / "templates" / "history.yaml", _HEADER % history.OVERLAY + history.history()
    yield CHART / "templates" / "monitoring.yaml", _HEADER % monitoring.PROMETHEUS + monitoring.monitoring()
    policy = _HEADER % monitoring.NETWORK_POLICY + monitoring.network_policy()
    yield CHART / "templates" / "network-policy.yaml", policy
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    yield CHART / "values.schema.json", f"{json.dumps(values_schema(values), indent=1)}\n"


def main() -> None:
    """Write all of them."""
    for path, text in files():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
