"""Coverage: whether those who hold some rules hold everything that other rules allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainer.kube.field_errors import show
from trainer_devcluster.apiserver.authorization.rules import ALL, Rule, covers_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def uncovered(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The smallest parts of `wanted` that are in no rule of `held`."""
    parts = (part for rule in wanted for part in _parts(rule))
    return [part for part in parts if not any(_covers(rule, part) for rule in held)]


def compacted(rules: Iterable[Rule]) -> list[Rule]:
    """The same with as few rules as possible: those about one resource, or one object of it, become one."""
    others: list[Rule] = []
    simple: dict[tuple[tuple[str, ...], ...], Rule] = {}
    for rule in rules:
        if rule.paths or len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1:
            others.append(rule)
            continue
        about = (rule.groups, rule.resources, rule.names)
        known = simple.get(about)
        verbs = (*known.verbs, *(verb for verb in rule.verbs if verb not in known.verbs)) if known else rule.verbs
        simple[about] = replace(rule, verbs=verbs)
    return [*others, *simple.values()]


def describe(rule: Rule) -> str:
    """A rule as refusals show it: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`."""
    lists = {
        "APIGroups": rule.groups,
        "Resources": rule.resources,
        "NonResourceURLs": rule.paths,
        "ResourceNames": rule.names,
        "Verbs": rule.verbs,
    }
    return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in lists.items() if values) + "}"


def quoted(values: Iterable[str]) -> str:
    """Texts as Go's `%q` prints a list of them: `["a" "b"]`."""
    return "[" + " ".join(map(show, values)) + "]"


def _parts(rule: Rule) -> Iterator[Rule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or (None,):
                    yield Rule((verb,), (group,), (resource,), () if name is None else (name,))
    for path in rule.paths:
        for verb in rule.verbs:
            yield Rule((verb,), paths=(path,))


def _covers(held: Rule, part: Rule) -> bool:
    """Whether a rule has everything that the part of another has."""
    return (
        _has(held.verbs, part.verbs)
        and _has(held.groups, part.groups)
        and all(_has_resource(held.resources, resource) for resource in part.resources)
        and (not held.names or (bool(part.names) and set(part.names) <= set(held.names)))
        and all(any(covers_path(pattern, path) for pattern in held.paths) for path in part.paths)
    )


def _has(held: Sequence[str], wanted: Sequence[str]) -> bool:
    return ALL in held or set(wanted) <= set(held)


def _has_resource(held: Sequence[str], wanted: str) -> bool:
    if ALL in held or wanted in held:
        return True
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in held
