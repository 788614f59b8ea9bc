"""The RBAC authorizer: users may do what the roles that are bound to them allow, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from anyio import Event

from trainer.kube.objects import Object, ObjectKey, key_of, name_of, namespace_of
from trainer.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from trainer_devcluster.apiserver.authentication.service_account_tokens import USER_PREFIX
from trainer_devcluster.apiserver.authentication.user import MASTERS, User
from trainer_devcluster.apiserver.authorization.authorizer import Decision, Held
from trainer_devcluster.apiserver.authorization.rules import AccessCheck, PolicyRule, rules_in
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

PARTITIONS: Final = tuple(map(Partition.of, (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)))


class Grant(NamedTuple):
    """The rules that a binding gives to one of its subjects."""

    source: str
    """The binding, its role and the subject, as reasons name them."""
    rules: tuple[PolicyRule, ...]
    problem: str = ""
    """Why there are no rules."""


class _Place(NamedTuple):
    """Where somebody is named: bindings and their subjects count in their order."""

    binding: int
    subject: int


@dataclass(slots=True)
class _Subjects:
    """Where users and groups are named by the bindings of one namespace, or by those that count everywhere."""

    bindings: list[Object] = field(default_factory=list)
    users: dict[str, list[_Place]] = field(default_factory=dict)
    groups: dict[str, list[_Place]] = field(default_factory=dict)

    def enter(self, binding: Object) -> None:
        """Take a binding in."""
        index, home = len(self.bindings), namespace_of(binding)
        self.bindings.append(binding)
        for number, subject in enumerate(binding.get("subjects") or ()):
            kind, name, place = subject.get("kind"), str(subject.get("name") or ""), _Place(index, number)
            if kind == "Group":
                self.groups.setdefault(name, []).append(place)
            elif kind == "User":
                self.users.setdefault(name, []).append(place)
            elif kind == "ServiceAccount" and (namespace := subject.get("namespace") or home):
                self.users.setdefault(f"{USER_PREFIX}{namespace}:{name}", []).append(place)

    def naming(self, user: User) -> Iterator[tuple[Object, Object]]:
        """The bindings that name a user or a group of theirs, each with the first subject that does."""
        places = list(self.users.get(user.name, ()))
        for group in user.groups:
            places += self.groups.get(group, ())
        first = {place.binding: place.subject for place in sorted(places, reverse=True)}
        for index in sorted(first):
            binding = self.bindings[index]
            yield binding, binding["subjects"][first[index]]


class Grants:
    """All grants as they were when the storage was read; rules are parsed when somebody is given them."""

    def __init__(self, storage: Storage) -> None:
        """Read the roles and bindings."""
        roles, cluster_roles, bindings, cluster_bindings = map(storage.snapshot, PARTITIONS)
        self._roles = {(role["kind"], key_of(role)): role for role in (*roles, *cluster_roles)}
        self._rules: dict[tuple[str, ObjectKey], tuple[PolicyRule, ...]] = {}
        self._subjects: dict[str, _Subjects] = {}
        for binding in (*cluster_bindings, *bindings):
            self._subjects.setdefault(namespace_of(binding), _Subjects()).enter(binding)

    def of(self, user: User, namespace: str) -> tuple[Grant, ...]:
        """The rules of a user in a namespace, or with "" in all: those of ClusterRoleBindings, then of RoleBindings."""
        scopes = dict.fromkeys(("", namespace))
        found = (self._subjects[scope].naming(user) for scope in scopes if scope in self._subjects)
        return tuple(self._grant(binding, subject) for named in found for binding, subject in named)

    def _grant(self, binding: Object, subject: Object) -> Grant:
        namespace, key, kind = namespace_of(binding), role_key(binding), binding["roleRef"].get("kind") or ""
        name = f"{name_of(binding)}/{namespace}" if namespace else name_of(binding)
        bound = f'{"RoleBinding" if namespace else "ClusterRoleBinding"} "{name}" of {kind} "{key.name}"'
        rules = self._rules_in(kind, key)
        problem = f'{kind.lower()}.{ROLES.group} "{key.name}" not found' if rules is None else ""
        return Grant(f"{bound} to {_described(subject, namespace)}", rules or (), problem)

    def _rules_in(self, kind: str, key: ObjectKey) -> tuple[PolicyRule, ...] | None:
        """The rules of a role; None when there is none."""
        rules = self._rules.get((kind, key))
        if rules is None and (role := self._roles.get((kind, key))) is not None:
            rules = self._rules[kind, key] = rules_in(role)
        return rules


def role_key(binding: Object) -> ObjectKey:
    """Key of the role that is bound: of a Role in the same namespace, or of a ClusterRole."""
    reference = binding["roleRef"]
    namespace = namespace_of(binding) if reference.get("kind") == ROLES.kind else ""
    return ObjectKey(namespace, str(reference.get("name") or ""))


def _described(subject: Object, namespace: str) -> str:
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "ServiceAccount":
        return f'{kind} "{name}/{subject.get("namespace") or namespace}"'
    return f'{kind} "{name}"'


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts, each once, without empty ones."""
    return tuple(dict.fromkeys(text for text in texts if text))


_REMEMBERED: Final = 4096
"""So many users in namespaces are remembered with their grants; more are looked up again."""


class RbacAuthorizer:
    """Reads roles and bindings from the storage when one of them has changed, and remembers who has which.

    A decision takes microseconds with any number of bindings; the first one after a change takes as long as reading all
    of them.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._grants: Grants | None = None
        self._changes: tuple[Event, ...] = ()
        self._remembered: dict[tuple[str, tuple[str, ...], str], tuple[Grant, ...]] = {}

    def authorize(self, attributes: AccessCheck) -> Decision:
        """Whether the user may do that; members of `system:masters` may do everything."""
        if MASTERS in attributes.user.groups:
            return Decision(allowed=True)
        grants = self._grants_of(attributes.user, attributes.namespace)
        for grant in grants:
            for rule in grant.rules:
                if rule.allows(attributes):
                    return Decision(True, f"RBAC: allowed by {grant.source}")
        problems = distinct(grant.problem for grant in grants)
        return Decision(False, f"RBAC: {joined(problems)}" if problems else "")

    def rules_of(self, user: User, namespace: str) -> Held:
        """The rules that bindings grant the user in a namespace, or with "" in all."""
        grants = self._grants_of(user, namespace)
        rules = tuple(rule for grant in grants for rule in grant.rules)
        return Held(rules, distinct(grant.problem for grant in grants))

    def _grants_of(self, user: User, namespace: str) -> tuple[Grant, ...]:
        current = self._current()
        key = (user.name, user.groups, namespace)
        grants = self._remembered.get(key)
        if grants is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            grants = self._remembered[key] = current.of(user, namespace)
        return grants

    def _current(self) -> Grants:
        if self._grants is not None and not any(change.is_set() for change in self._changes):
            return self._grants
        self._changes = tuple(map(self._storage.changed, PARTITIONS))
        self._remembered.clear()
        self._grants = Grants(self._storage)
        return self._grants


def joined(problems: tuple[str, ...]) -> str:
    """Several problems as Kubernetes lists them; "" without any."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""
