"""Rules: what one entry of a role allows, and whether some rules allow all that others do.

Kubernetes documentation, "Using RBAC Authorization".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from trainer.kube.field_errors import show
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.authentication.user import User

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """What an authorizer decides about: a verb on a resource or, if `path` is set, on a non-resource path."""

    user: User
    verb: str
    """As roles name it: get, list, watch, create, update, patch, delete, deletecollection ...; for a path the HTTP
    method in lower case."""
    group: str = ""
    version: str = ""
    resource: str = ""
    """Plural."""
    subresource: str = ""
    namespace: str = ""
    """"" for cluster-scoped resources and for all namespaces."""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Verbs, and what they may be done to: resources of API groups, or paths that belong to no resource."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """`pods`, `pods/log`, `*/scale` or `*`."""
    names: tuple[str, ...] = ()
    """Objects by name; without any all of them."""
    paths: tuple[str, ...] = ()
    """Paths, a `*` at the end stands for anything."""
    _verbs: frozenset[str] = field(init=False, repr=False, compare=False)
    _groups: frozenset[str] = field(init=False, repr=False, compare=False)
    _resources: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make what lookups need; the class is frozen for everybody else."""
        object.__setattr__(self, "_verbs", frozenset(self.verbs))
        object.__setattr__(self, "_groups", frozenset(self.groups))
        object.__setattr__(self, "_resources", frozenset(self.resources))

    @classmethod
    def parse(cls, obj: Object) -> Self:
        """The rule in a PolicyRule of rbac.authorization.k8s.io/v1."""
        return cls(
            tuple(obj.get("verbs") or ()),
            tuple(obj.get("apiGroups") or ()),
            tuple(obj.get("resources") or ()),
            tuple(obj.get("resourceNames") or ()),
            tuple(obj.get("nonResourceURLs") or ()),
        )

    def to_object(self) -> Object:
        """The rule as a PolicyRule."""
        obj: Object = {"verbs": list(self.verbs)}
        lists = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.paths,
        }
        return obj | {name: list(values) for name, values in lists.items() if values}

    def allows(self, wanted: AccessCheck) -> bool:
        """Whether a request is one of those that the rule is about."""
        if wanted.verb not in self._verbs and ALL not in self._verbs:
            return False
        if wanted.path:
            return any(covers_path(path, wanted.path) for path in self.paths)
        if wanted.group not in self._groups and ALL not in self._groups:
            return False
        return self._has_resource(wanted) and (not self.names or wanted.name in self.names)

    def _has_resource(self, wanted: AccessCheck) -> bool:
        if ALL in self._resources:
            return True
        if not wanted.subresource:
            return wanted.resource in self._resources
        combined = f"{wanted.resource}/{wanted.subresource}"
        return combined in self._resources or f"*/{wanted.subresource}" in self._resources


EVERYTHING: Final = (PolicyRule((ALL,), (ALL,), (ALL,)), PolicyRule((ALL,), paths=(ALL,)))
"""The rules of `cluster-admin`."""


def covers_path(pattern: str, path: str) -> bool:
    """Whether a path, which may itself be a pattern, is one of those that a pattern stands for."""
    if pattern in (ALL, path):
        return True
    return pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL))


def rules_in(role: Object) -> tuple[PolicyRule, ...]:
    """The rules of a Role or ClusterRole."""
    return tuple(PolicyRule.parse(entry) for entry in role.get("rules") or ())


def uncovered(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The smallest parts of `wanted` that are in no rule of `held`."""
    parts = (part for rule in wanted for part in _parts(rule))
    return [part for part in parts if not any(_covers(rule, part) for rule in held)]


def compacted(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Merge rules about the same resource, or the same object of it."""
    others: list[PolicyRule] = []
    simple: dict[tuple[tuple[str, ...], ...], PolicyRule] = {}
    for rule in rules:
        if rule.paths or len(rule.groups) != 1 or len(rule.resources) != 1 or len(rule.names) > 1:
            others.append(rule)
            continue
        about = (rule.groups, rule.resources, rule.names)
        known = simple.get(about)
        verbs = (*known.verbs, *(verb for verb in rule.verbs if verb not in known.verbs)) if known else rule.verbs
        simple[about] = replace(rule, verbs=verbs)
    return [*others, *simple.values()]


def describe(rule: PolicyRule) -> str:
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


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or (None,):
                    yield PolicyRule((verb,), (group,), (resource,), () if name is None else (name,))
    for path in rule.paths:
        for verb in rule.verbs:
            yield PolicyRule((verb,), paths=(path,))


def _covers(held: PolicyRule, part: PolicyRule) -> bool:
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
