"""Write the Grafana dashboards of config/grafana from the tables in `hack.dashboards`.

python -m hack.generate_dashboards
"""

from __future__ import annotations

import json
from pathlib import Path

from hack.dashboards import operators, trainings

TARGET = Path(__file__).parents[1] / "config" / "grafana"


def dashboards() -> dict[str, str]:
    """The text of each file, by name."""
    return {
        f"{module.DASHBOARD.uid}.json": json.dumps(module.DASHBOARD.json(), indent=2) + "\n"
        for module in (operators, trainings)
    }


def main() -> None:
    """Write them all."""
    for name, text in dashboards().items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
