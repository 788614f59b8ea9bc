"""What differs between two trainings: parameters, spec, runtime, result, and last values of metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from trainer.kube.objects import Object, mapping_at
from trainer_dashboard.history.queries import History, TrainingRecord
from trainer_dashboard.recipe.parameters import parameters_of, with_reported
from trainer_dashboard.recipe.user_command import UserCommand

DIFFERENCES_LIMIT = 200
"""Differences of each part that are given; a spec may have some thousands."""
_DEPTH = 32
_LONGEST = 200
_NAME_OF_CODE = ".configMap.name"
_CODE = re.compile(r"[a-z0-9-]{1,63}-(code-[0-9a-f]{10})")


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs; None on the side that lacks it."""

    field: str
    """Its path, such as `trainer.numNodes`, or the name of a metric."""
    left: str | None
    right: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The parts in which two trainings may differ."""

    result: tuple[Difference, ...]
    """State, reason, time, image, nodes; also what is equal, so that there is something to read."""
    parameters: tuple[Difference, ...]
    """Those that a sweep has given, of the command line, and that the reporter has found; the spec has their words by
    place."""
    spec: tuple[Difference, ...]
    runtime: tuple[Difference, ...]
    """Its spec, and what was rendered of it is not compared."""
    metrics: tuple[Difference, ...]
    """The last values of all metrics, also of those that are equal."""


def compare(history: History, left: TrainingRecord, right: TrainingRecord) -> Comparison:
    """Compare two trainings; blocks for some queries."""
    jobs, runtimes = (
        [history.document(each.uid, kind) or {} for each in (left, right)] for kind in ("trainjob", "runtime")
    )
    sides = zip(jobs, (left, right), strict=True)
    parameters = [
        with_reported(record.assignment, with_reported(_parameters(job), history.parameters(record.uid)))
        for job, record in sides
    ]
    metrics = [_last_values(history, each) for each in (left, right)]
    names = dict.fromkeys([*metrics[0], *metrics[1]])
    return Comparison(
        tuple(_results(left, right)),
        tuple(_of_names(*parameters))[:DIFFERENCES_LIMIT],
        tuple(_differences(*(mapping_at(job, "spec") for job in jobs))),
        tuple(_differences(*(mapping_at(runtime, "spec") for runtime in runtimes))),
        tuple(Difference(name, metrics[0].get(name), metrics[1].get(name)) for name in names)[:DIFFERENCES_LIMIT],
    )


def _parameters(job: Object) -> dict[str, str]:
    said = UserCommand.of(job)
    return parameters_of([*said.command, *said.args])


def _of_names(left: dict[str, str], right: dict[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys([*left, *right]):
        if left.get(name) != right.get(name):
            yield Difference(name, *(_set(each[name]) if name in each else None for each in (left, right)))


def _set(value: str) -> str:
    """A value of a parameter, which may be set without one."""
    return _shown(value) if value else "set"


def _results(left: TrainingRecord, right: TrainingRecord) -> Iterator[Difference]:
    for field in ("state", "reason", "message", "seconds", "runtime", "runtime_version", "image", "nodes", "creator"):
        one, other = (getattr(each, field) for each in (left, right))
        if one != other or field in {"state", "seconds"}:
            yield Difference(field, *(None if value in {None, ""} else _shown(value) for value in (one, other)))


def _last_values(history: History, record: TrainingRecord) -> dict[str, str]:
    """From the samples, else what the status had."""
    curves = history.curves(record.uid).by_metric
    sampled = {
        _metric(metric.name, is_eval=metric.is_eval): _shown(curve.values[-1]) for metric, curve in curves.items()
    }
    return {_metric(each.name, is_eval=each.is_eval): each.value for each in record.metrics} | sampled


def _metric(name: str, *, is_eval: bool) -> str:
    return f"eval {name}" if is_eval else name


def _differences(left: Any, right: Any) -> list[Difference]:
    found: list[Difference] = []
    _walk("", left, right, found, _DEPTH)
    return found


def _walk(path: str, left: Any, right: Any, found: list[Difference], depth: int) -> None:
    """Add the leaves that differ; lists are compared item by item, those of named objects by name."""
    if path.endswith(_NAME_OF_CODE):
        left, right = _code(left), _code(right)
    if left == right or len(found) >= DIFFERENCES_LIMIT:
        return
    left, right = _by_name(left), _by_name(right)
    if depth and isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            shown = name if name.startswith("[") else f".{name}" if path else name
            _walk(path + shown, left.get(name, _ABSENT), right.get(name, _ABSENT), found, depth - 1)
        return
    found.append(Difference(path, *(None if value is _ABSENT else _shown(value) for value in (left, right))))


def _code(name: Any) -> Any:
    """What says which code it is, in the name of a ConfigMap that `trainer run` has made for one TrainJob."""
    found = _CODE.fullmatch(name) if isinstance(name, str) else None
    return name if found is None else found[1]


_ABSENT = object()


def _by_name(value: Any) -> Any:
    """A list as a mapping: by the names of its items if they have such, else by their indexes."""
    if not isinstance(value, list):
        return value
    names = [item.get("name") if isinstance(item, dict) else None for item in value]
    if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return {f"[{name}]": item for name, item in zip(names, value, strict=True)}
    return {f"[{index}]": item for index, item in enumerate(value)}


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else ""
    text = text or msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
