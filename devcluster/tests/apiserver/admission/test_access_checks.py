"""What expressions can ask about the sender of a request."""

from __future__ import annotations

import pytest

from devcluster.tests.apiserver.authorization.samples import binding, put, role
from trainer.kube.resource import JOBS
from trainer_devcluster.apiserver.admission.access_checks import Requester
from trainer_devcluster.apiserver.admission.attributes import Attributes, Endpoint, Operation
from trainer_devcluster.apiserver.admission.conditions import Condition, ConditionError, all_hold
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.rbac import RbacAuthorizer
from trainer_devcluster.apiserver.authorization.rules import Rule
from trainer_devcluster.apiserver.storage.storage import Storage

STORAGE = put(
    Storage(),
    role("r", Rule(("update",), ("batch",), ("jobs/status",)), Rule(("breakglass",), ("x",), ("hooks",), ("h",))),
    role("p", Rule(("get",), paths=("/healthz",))),
    binding("r", "ClusterRole/r", "user jane", namespace="n"),
    binding("p", "ClusterRole/p", "user jane", "account n/bot"),
)
REQUESTER = Requester.of(
    RbacAuthorizer(STORAGE),
    Attributes(Endpoint(Operation.UPDATE, JOBS, "status"), "n", "j", None, None, User("jane"), {}),
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("authorizer.requestResource.check('update').allowed()", True, id="the request itself"),
        pytest.param("authorizer.requestResource.check('patch').allowed()", False, id="another verb"),
        pytest.param("authorizer.requestResource.subresource('').check('update').allowed()", False, id="another part"),
        pytest.param(
            "authorizer.group('x').resource('hooks').namespace('n').name('h').check('breakglass').allowed()",
            True,
            id="anything",
        ),
        pytest.param(
            "authorizer.group('x').resource('hooks').namespace('n').check('breakglass').allowed()", False, id="no name"
        ),
        pytest.param(
            "authorizer.requestResource.fieldSelector('a=b').labelSelector('a').check('update').allowed()",
            True,
            id="selectors",
        ),
        pytest.param("authorizer.path('/healthz').check('get').allowed()", True, id="path"),
        pytest.param("authorizer.path('/metrics').check('get').allowed()", False, id="another path"),
        pytest.param(
            "authorizer.serviceAccount('n', 'bot').path('/healthz').check('get').allowed()", True, id="ServiceAccount"
        ),
        pytest.param(
            "authorizer.path('/healthz').check('get').reason().startsWith('RBAC: allowed by ClusterRoleBinding')",
            True,
            id="reason",
        ),
        pytest.param(
            "authorizer.path('/x').check('get').errored() || authorizer.path('/x').check('get').error() != ''",
            False,
            id="nothing fails",
        ),
    ],
)
def test_answers(expression: str, expected: bool) -> None:
    """An expression gets the decision that a request would get."""
    assert all_hold((Condition.compile("c", expression),), {}, REQUESTER) is expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("authorizer.path('').check('get').allowed()", "path must not be empty", id="no path"),
        pytest.param(
            "authorizer.serviceAccount('N', 'a').path('/').check('get').allowed()",
            "Invalid service account namespace",
            id="no namespace",
        ),
        pytest.param(
            "authorizer.serviceAccount('n', 'A').path('/').check('get').allowed()",
            "Invalid service account name",
            id="no name",
        ),
    ],
)
def test_questions_without_an_answer(expression: str, problem: str) -> None:
    """What cannot be is an error of the expression."""
    with pytest.raises(ConditionError, match=problem):
        all_hold((Condition.compile("c", expression),), {}, REQUESTER)
