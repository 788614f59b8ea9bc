"""Access checks: the `authorizer` of expressions, which knows what the sender of a request may do.

Source: Kubernetes documentation, "Common Expression Language in Kubernetes", Kubernetes authorizer library.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trainer_devcluster.apiserver.authentication.service_account_tokens import service_account
from trainer_devcluster.apiserver.authorization.authorizer import Attributes
from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.signatures import declare
from trainer_devcluster.apiserver.cel.types import Type, object_of
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.admission import attributes as admission
    from trainer_devcluster.apiserver.authentication.user import User
    from trainer_devcluster.apiserver.authorization.authorizer import Authorizer, Decision
    from trainer_devcluster.apiserver.cel.signatures import Function

_PREFIX: Final = "kubernetes.authorization"


class Requester(dict[str, Any]):
    """Whose rights are looked at; for the sender of the request an object with the field `requestResource`."""

    CEL_TYPE: ClassVar[str] = f"{_PREFIX}.Authorizer"

    def __init__(self, authorizer: Authorizer, user: User, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._authorizer = authorizer
        self._user = user

    @classmethod
    def of(cls, authorizer: Authorizer, request: admission.Attributes) -> Requester:
        """The sender of a request."""
        endpoint, user = request.endpoint, request.user
        resource = endpoint.resource
        wanted = Attributes(
            user,
            "",
            resource.group,
            resource.version,
            resource.plural,
            endpoint.subresource,
            request.namespace,
            request.name,
        )
        return cls(authorizer, user, {"requestResource": ResourceCheck(authorizer, wanted)})

    def group(self, name: str) -> GroupCheck:
        """Ask about resources of a group."""
        return GroupCheck(self._authorizer, Attributes(self._user, "", name, "*"))

    def path(self, path: str) -> PathCheck:
        """Ask about a path that belongs to no resource.

        Raises:
            EvaluationError: it is empty.
        """
        if not path:
            raise EvaluationError("path must not be empty")
        return PathCheck(self._authorizer, Attributes(self._user, "", path=path))

    def service_account(self, namespace: str, name: str) -> Requester:
        """Look at the rights of a ServiceAccount instead.

        Raises:
            EvaluationError: nothing can have such a namespace or name.
        """
        if not namespace or name_problems(namespace, NameRule.LABEL):
            raise EvaluationError("Invalid service account namespace")
        if not name or name_problems(name, NameRule.SUBDOMAIN):
            raise EvaluationError("Invalid service account name")
        return Requester(self._authorizer, service_account(namespace, name), {})


@dataclass(frozen=True, slots=True)
class _Check:
    authorizer: Authorizer
    wanted: Attributes

    def check(self, verb: str) -> Answer:
        """Ask whether that may be done."""
        return Answer(self.authorizer.authorize(replace(self.wanted, verb=verb)))


class PathCheck(_Check):
    """A question about a path; the verb is a method of HTTP in lower case."""

    __slots__ = ()
    CEL_TYPE: ClassVar[str] = f"{_PREFIX}.PathCheck"


class ResourceCheck(_Check):
    """A question about a resource."""

    __slots__ = ()
    CEL_TYPE: ClassVar[str] = f"{_PREFIX}.ResourceCheck"

    def subresource(self, name: str) -> ResourceCheck:
        """Ask about a subresource."""
        return ResourceCheck(self.authorizer, replace(self.wanted, subresource=name))

    def namespace(self, name: str) -> ResourceCheck:
        """Ask about a namespace."""
        return ResourceCheck(self.authorizer, replace(self.wanted, namespace=name))

    def name(self, name: str) -> ResourceCheck:
        """Ask about one object."""
        return ResourceCheck(self.authorizer, replace(self.wanted, name=name))

    def selected(self, _: str) -> ResourceCheck:
        """Ask about selected objects: for roles the same as asking about all of them."""
        return self


class GroupCheck(_Check):
    """The beginning of a question about a resource."""

    __slots__ = ()
    CEL_TYPE: ClassVar[str] = f"{_PREFIX}.GroupCheck"

    def resource(self, name: str) -> ResourceCheck:
        """Ask about a resource, by its plural."""
        return ResourceCheck(self.authorizer, replace(self.wanted, resource=name))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the authorizer says."""

    CEL_TYPE: ClassVar[str] = f"{_PREFIX}.Decision"
    decision: Decision


AUTHORIZER: Final = object_of(Requester.CEL_TYPE, {"requestResource": Type(ResourceCheck.CEL_TYPE)})
"""Type of the variable."""

_A, _G, _R, _P = (kind.CEL_TYPE for kind in (Requester, GroupCheck, ResourceCheck, PathCheck))
_D: Final = Answer.CEL_TYPE
_SIGNATURES: Final[list[tuple[str, Function]]] = [
    (f"{_A}.path(string) -> {_P}", Requester.path),
    (f"{_A}.group(string) -> {_G}", Requester.group),
    (f"{_A}.serviceAccount(string, string) -> {_A}", Requester.service_account),
    (f"{_G}.resource(string) -> {_R}", GroupCheck.resource),
    (f"{_R}.subresource(string) -> {_R}", ResourceCheck.subresource),
    (f"{_R}.namespace(string) -> {_R}", ResourceCheck.namespace),
    (f"{_R}.name(string) -> {_R}", ResourceCheck.name),
    (f"{_R}.fieldSelector(string) -> {_R}", ResourceCheck.selected),
    (f"{_R}.labelSelector(string) -> {_R}", ResourceCheck.selected),
    (f"{_R}.check(string) -> {_D}", ResourceCheck.check),
    (f"{_P}.check(string) -> {_D}", PathCheck.check),
    (f"{_D}.allowed() -> bool", lambda answer: answer.decision.allowed),
    (f"{_D}.reason() -> string", lambda answer: answer.decision.reason),
    (f"{_D}.errored() -> bool", lambda _: False),
    (f"{_D}.error() -> string", lambda _: ""),
]
FUNCTIONS: Final = declare(_SIGNATURES)
"""What may be called on it."""
