"""Grafana dashboards ask for what exists, in PromQL that Prometheus takes, of the data source that is chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.generate_dashboards import TARGET, dashboards
from tests.config.kustomized import of_kind, rendered
from tests.config.series import problems
from tests.promtool import needs_promtool, promtool
from trainer.kube.objects import labels_of, name_of

FILES = sorted(dashboards())
IN_ALL = {"$__rate_interval": "5m", "$__range": "1h", "$namespace": ".*", "$runtime": ".*"}
"""What Grafana puts in place of variables."""


def dashboard(name: str) -> Any:
    """A dashboard as Grafana reads it."""
    return json.loads((TARGET / name).read_text())


def expressions(name: str) -> Iterator[str]:
    """All that it asks, as Prometheus gets it."""
    for panel in dashboard(name)["panels"]:
        for target in panel.get("targets", ()):
            yield filled_in(target["expr"])


def filled_in(expression: str) -> str:
    """A query with values in place of variables."""
    for variable, value in IN_ALL.items():
        expression = expression.replace(variable, value)
    return expression


@pytest.mark.parametrize("name", FILES)
def test_up_to_date(name: str) -> None:
    """`python -m hack.generate_dashboards` has been run."""
    assert (TARGET / name).read_text() == dashboards()[name]


def test_config_maps() -> None:
    """Each dashboard is in a ConfigMap that Grafana's sidecar finds."""
    config_maps = of_kind(rendered("grafana"), "ConfigMap")
    assert [file for config_map in config_maps for file in config_map["data"]] == FILES
    assert {labels_of(config_map)["grafana_dashboard"] for config_map in config_maps} == {"1"}
    assert all(name_of(config_map).startswith("trainer-dashboard-") for config_map in config_maps)


@pytest.mark.parametrize("name", FILES)
def test_structure(name: str) -> None:
    """Ids are unique, panels do not overlap, and all of them ask the data source of the variable."""
    made = dashboard(name)
    panels = made["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    cells = [cell for panel in panels for cell in covered(panel["gridPos"])]
    assert len(cells) == len(set(cells))
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    first, *others = made["templating"]["list"]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    asked = [thing["datasource"] for thing in (*others, *panels, *targets(panels)) if thing["type"] != "row"]
    assert all(datasource == {"type": "prometheus", "uid": "${datasource}"} for datasource in asked)
    titles = [panel["title"] for panel in panels]
    assert len(titles) == len(set(titles))


def covered(place: dict[str, int]) -> Iterator[tuple[int, int]]:
    """The cells of the grid that a panel takes."""
    for x in range(place["x"], place["x"] + place["w"]):
        for y in range(place["y"], place["y"] + place["h"]):
            yield x, y


def targets(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All queries of all panels."""
    for panel in panels:
        for target in panel.get("targets", ()):
            yield {"type": "target", **target}


def test_uids() -> None:
    """Links to a dashboard name its uid: each has its own, which stays."""
    assert [dashboard(name)["uid"] for name in FILES] == ["trainer-operators", "trainer-trainjobs"]


@pytest.mark.parametrize("name", FILES)
def test_metrics_exist(name: str) -> None:
    """The manager, or a recording rule, has every metric and label that a panel asks for."""
    assert {expression: found for expression in expressions(name) if (found := problems(expression))} == {}


@needs_promtool
@pytest.mark.parametrize("name", FILES)
def test_promql(name: str, tmp_path: Path) -> None:
    """Prometheus parses every query."""
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(sorted(set(expressions(name))))]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    code, answer = promtool("check", "rules", str(tmp_path / "rules.yaml"))

    assert code == 0, answer
    assert f"{len(rules)} rules found" in answer
