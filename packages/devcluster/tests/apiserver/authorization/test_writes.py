"""What writes need beyond the verb of their request."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.authorization.samples import binding, put, role
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object, name_of, namespace_of
from trainer_devcluster.apiserver.authentication.user import ADMINISTRATOR, User
from trainer_devcluster.apiserver.authorization.rbac import RbacAuthorizer
from trainer_devcluster.apiserver.authorization.rules import PolicyRule
from trainer_devcluster.apiserver.authorization.writes import WriteGuard
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.kinds.configuration import CONFIG_MAP
from trainer_devcluster.apiserver.kinds.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from trainer_devcluster.apiserver.storage.storage import Storage

DEFINITIONS = {
    definition.resource.kind: definition
    for definition in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, ROLE, ROLE_BINDING)
}
BOB = User("bob", ("devs",))
RBAC = "rbac.authorization.k8s.io"
READ = PolicyRule(("get", "list"), ("",), ("pods",))
DELETE = PolicyRule(("delete",), ("",), ("pods",))
AGGREGATING = role("all") | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
IS_GRANTING = 'user "bob" (groups=["devs"]) is attempting to grant RBAC permissions not currently held:\n'
EVERYWHERE = binding("b", "ClusterRole/held", "user bob")


def check(storage: Storage, new: Object, live: Object | None = None, *, user: User = BOB, verb: str = "create") -> str:
    """The message of the refusal, "" when there is none."""
    target = Target(DEFINITIONS[new["kind"]], verb, namespace_of(new) or None, "" if verb == "create" else name_of(new))
    try:
        WriteGuard(RbacAuthorizer(storage), storage, user, target).check(new, live)
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("held", "new", "refusal"),
    [
        pytest.param(
            [],
            role("r", READ, PolicyRule(("get",), paths=("/x",))),
            f'clusterroles.{RBAC} "r" is forbidden: {IS_GRANTING}'
            '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n{NonResourceURLs:["/x"], Verbs:["get"]}',
            id="cluster role",
        ),
        pytest.param(
            [READ],
            AGGREGATING,
            f'clusterroles.{RBAC} "all" is forbidden: must have cluster-admin privileges to use the aggregationRule',
            id="aggregation",
        ),
        pytest.param(
            [PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), paths=("*",))],
            AGGREGATING,
            "",
            id="aggregation by an admin",
        ),
        pytest.param([READ], binding("x", "ClusterRole/read", "user eve", namespace="n"), "", id="binding of a role"),
        pytest.param(
            [PolicyRule(("bind",), (RBAC,), ("clusterroles",), ("delete",))],
            binding("x", "ClusterRole/delete", "user eve", namespace="n"),
            "",
            id="bind",
        ),
    ],
)
def test_nobody_gives_what_they_do_not_have(held: list[PolicyRule], new: Object, refusal: str) -> None:
    """Roles and bindings are refused when they allow more than their author may do, with what that is."""
    storage = put(Storage(), role("held", *held), EVERYWHERE, role("read", READ), role("delete", DELETE))
    assert check(storage, new) == refusal
    assert check(storage, new, user=ADMINISTRATOR) == ""


def test_bookkeeping_is_free() -> None:
    """Every user who may change a role may change its finalizers, the garbage collector included."""
    storage, live = Storage(), role("r", DELETE)
    changed = live | {"metadata": {**live["metadata"], "finalizers": ["a/b"]}}
    assert check(storage, changed, live, verb="update") == ""
    labelled = live | {"metadata": {**live["metadata"], "labels": {"a": "b"}}}
    assert "attempting to grant" in check(storage, labelled, live, verb="update")


def test_unresolved_bindings_are_named() -> None:
    """The answer to somebody whose own role is missing says so."""
    storage = put(Storage(), binding("b", "ClusterRole/gone", "user bob"))
    message = check(storage, role("r", DELETE))
    assert message.endswith('; resolution errors: [clusterrole.rbac.authorization.k8s.io "gone" not found]')
