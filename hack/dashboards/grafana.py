"""Dashboards as Grafana's JSON: rows of panels, laid out from left to right, with ids that follow from their place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
"""Whoever imports a dashboard chooses it, in a variable."""
_WIDTH: Final = 24
_HEIGHTS: Final = {"stat": 4, "timeseries": 8, "table": 8}


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel and what it asks."""

    title: str
    queries: dict[str, str]
    """PromQL by legend, in which {{label}} stands for the value of a label."""
    description: str = ""
    """What a reader should make of it, where the title does not say it. Default: nothing."""
    unit: str = "short"
    """Unit as Grafana names it. Default: a plain number."""
    type: str = "timeseries"
    """`timeseries`, `stat` or `table`. Default: a graph over time."""
    width: int = 8
    """Of 24 columns. Default: three panels beside each other."""
    stacked: bool = False
    """Whether the lines of a graph add up. Default: no."""
    thresholds: tuple[tuple[float, str], ...] = ()
    """From which value on a stat has which colour; green below. Default: always green."""
    nothing: str = ""
    """Text of a stat that has no value. Default: Grafana's own."""
    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Text and colour in place of a value of a stat. Default: none."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a headline."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top, from the values of a label; all of them unless somebody chooses."""

    name: str
    label: str
    query: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard; its uid is what links name, and must stay."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    period: str = "now-6h"
    """From when on it shows. Default: six hours ago."""

    def json(self) -> Json:
        """What Grafana imports."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["kubeflow", "trainer"],
            "schemaVersion": 39,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": self.period, "to": "now"},
            "timezone": "browser",
            "templating": {"list": [_datasource_variable(), *map(_variable, self.variables)]},
            "annotations": {"list": []},
            "panels": _laid_out(self.rows),
        }


def _datasource_variable() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}


def _variable(variable: Variable) -> Json:
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "definition": variable.query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _laid_out(rows: tuple[Row, ...]) -> list[Json]:
    made: list[Json] = []
    x = y = height = 0
    for row in rows:
        made.append({"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _at(0, y, 24, 1)})
        x, y, height = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > _WIDTH:
                x, y, height = 0, y + height, 0
            made.append(_panel(panel) | {"gridPos": _at(x, y, panel.width, _HEIGHTS[panel.type])})
            x, height = x + panel.width, max(height, _HEIGHTS[panel.type])
        y += height
    return [{"id": number, **panel} for number, panel in enumerate(made, 1)]


def _at(x: int, y: int, width: int, height: int) -> Json:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel) -> Json:
    return {
        "type": panel.type,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "targets": [_target(panel, *query, index) for index, query in enumerate(panel.queries.items())],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
    } | ({"transformations": _COLUMNS} if panel.type == "table" else {})


def _target(panel: Panel, legend: str, query: str, index: int) -> Json:
    is_range = panel.type == "timeseries"
    return {
        "refId": chr(ord("A") + index),
        "datasource": DATASOURCE,
        "expr": " ".join(query.split()),
        "legendFormat": legend,
        "range": is_range,
        "instant": not is_range,
        "format": "table" if panel.type == "table" else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    steps = [
        {"value": None, "color": "green"},
        *({"value": value, "color": color} for value, color in panel.thresholds),
    ]
    defaults: Json = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.nothing:
        defaults["noValue"] = panel.nothing
    if panel.words:
        options = {value: {"text": text, "color": color} for value, (text, color) in panel.words.items()}
        defaults["mappings"] = [{"type": "value", "options": options}]
    if panel.type == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        fill = 30 if panel.stacked else 10
        defaults["custom"] = {"lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "stacking": stacking}
        defaults["min"] = 0
    return defaults


def _options(panel: Panel) -> Json:
    if panel.type == "timeseries":
        return {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.type == "stat":
        return {"colorMode": "value", "graphMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return {"showHeader": True}


_COLUMNS: Final = [{"id": "organize", "options": {"excludeByName": {"Time": True}}}]
