"""The RBAC authorizer: who may do what, why, and that it notices changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from packages.devcluster.tests.apiserver.authorization.samples import binding, put, remove, role
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.rbac import RbacAuthorizer
from trainer_devcluster.apiserver.authorization.rules import AccessCheck, PolicyRule, rules_in
from trainer_devcluster.apiserver.storage.storage import KeyExistsError, Partition, Storage

BOB: Final = User("bob", ("devs", "system:authenticated"))
READ: Final = PolicyRule(("get", "list"), ("",), ("pods",))
HEALTH: Final = PolicyRule(("get",), paths=("/healthz",))


def pods(user: User, verb: str = "list", namespace: str = "n") -> AccessCheck:
    """Something with pods."""
    return AccessCheck(user, verb, "", "v1", "pods", namespace=namespace)


def test_memory_is_bounded() -> None:
    """However many users come along, decisions stay right."""
    authorizer = RbacAuthorizer(put(Storage(), role("r", READ), binding("b", "ClusterRole/r", "user u9")))
    allowed = [number for number in range(5000) if authorizer.authorize(pods(User(f"u{number}"))).allowed]
    assert allowed == [9]


names = st.sampled_from(["a", "b"])
namespaces = st.sampled_from(["", "n", "m"])
verbs = st.sampled_from(["get", "list", "*"])
resources = st.sampled_from(["pods", "pods/log", "*/log", "*"])
rules = st.one_of(
    st.builds(
        PolicyRule,
        st.lists(verbs, max_size=2).map(tuple),
        st.lists(st.sampled_from(["", "apps", "*"]), max_size=2).map(tuple),
        st.lists(resources, max_size=2).map(tuple),
        st.lists(names, max_size=1).map(tuple),
    ),
    st.builds(lambda verb, path: PolicyRule((verb,), paths=(path,)), verbs, st.sampled_from(["/a", "/a/*", "*"])),
)
users = st.builds(
    User,
    st.sampled_from(["a", "b", "system:serviceaccount:n:a", "system:serviceaccount:m:b"]),
    st.lists(names, max_size=2, unique=True).map(tuple),
)
subjects = st.sampled_from(["user a", "user b", "group a", "group b", "account a", "account n/a", "account m/b"])
changes = st.one_of(
    st.builds(lambda name, found, space: role(name, *found, namespace=space), names, st.lists(rules), namespaces),
    st.builds(
        lambda name, kind, of, found, space: binding(name, f"{kind}/{of}", *found, namespace=space),
        names,
        st.sampled_from(["Role", "ClusterRole"]),
        names,
        st.lists(subjects, max_size=3),
        namespaces,
    ),
)
questions = st.one_of(
    st.builds(
        AccessCheck,
        users,
        st.sampled_from(["get", "list", "create"]),
        st.sampled_from(["", "apps"]),
        st.just("v1"),
        st.just("pods"),
        st.sampled_from(["", "log"]),
        namespaces,
        st.sampled_from(["", "a", "b"]),
    ),
    st.builds(lambda user, path: AccessCheck(user, "get", path=path), users, st.sampled_from(["/a", "/a/b", "/c"])),
)


@settings(deadline=None)
@given(st.lists(st.tuples(changes, questions), max_size=12))
def test_agrees_with_a_look_at_everything(steps: list[tuple[Object, AccessCheck]]) -> None:
    """After any changes the answer is that of going through all bindings, subjects, roles and rules."""
    storage = Storage()
    authorizer = RbacAuthorizer(storage)
    for obj, question in steps:
        try:
            put(storage, obj)
        except KeyExistsError:
            remove(storage, obj)
        assert authorizer.authorize(question).allowed is naive(storage, question)
        elsewhere = replace(question, namespace="m" if question.namespace == "n" else "n")
        if not question.path:
            assert authorizer.authorize(elsewhere).allowed is naive(storage, elsewhere)


def naive(storage: Storage, wanted: AccessCheck) -> bool:
    """The decision, by going through everything there is."""
    bindings = storage.snapshot(Partition.of(CLUSTER_ROLE_BINDINGS)) + storage.snapshot(Partition.of(ROLE_BINDINGS))
    return any(
        rule.allows(wanted)
        for bound in bindings
        if namespace_of(bound) in ("", wanted.namespace)
        for subject in bound["subjects"]
        if is_meant(subject, namespace_of(bound), wanted.user)
        for found in bound_roles(storage, bound)
        for rule in rules_in(found)
    )


def is_meant(subject: Object, home: str, user: User) -> bool:
    """Whether a subject of a binding in a namespace is the user."""
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    namespace = subject.get("namespace") or home
    return bool(namespace) and user.name == f"system:serviceaccount:{namespace}:{subject['name']}"


def bound_roles(storage: Storage, bound: Object) -> list[Object]:
    """The role of a binding, or nothing."""
    is_local = bound["roleRef"]["kind"] == "Role"
    roles = storage.snapshot(Partition.of(ROLES if is_local else CLUSTER_ROLES))
    home = namespace_of(bound) if is_local else ""
    return [found for found in roles if (namespace_of(found), name_of(found)) == (home, bound["roleRef"]["name"])]
