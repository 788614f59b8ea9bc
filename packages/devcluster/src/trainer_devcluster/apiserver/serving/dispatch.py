"""Dispatch: authenticates a request, finds its handler, turns failures into Status answers; writes the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from aiohttp import web

from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.audit import CLIENT_CLOSED_REQUEST, AuditLog, Record
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.authorizer import Access, acting_user, attributes_of, forbidden
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.routing import Target, UnknownPathError, resolve
from trainer_devcluster.apiserver.handlers import pod, pod_eviction, pod_exec, read, reviews, write
from trainer_devcluster.apiserver.handlers.call import Call, failure
from trainer_devcluster.apiserver.handlers.documents import Documents
from trainer_devcluster.apiserver.writes.deletion import AdmittedDeleter
from trainer_devcluster.apiserver.writes.object_writer import ObjectWriter
from trainer_kube_testing.api_semantics import statuses

log = structlog.get_logger(__name__)

Handler = Callable[[Call], Awaitable[web.StreamResponse]]

_OBJECT_HANDLERS: Final[dict[str, Handler]] = {
    "get": read.get,
    "list": read.list_or_watch,
    "create": write.create,
    "update": write.update,
    "patch": write.patch,
    "delete": write.delete,
    "deletecollection": write.delete_collection,
}
_REVIEW_HANDLERS: Final[dict[tuple[str, str], Handler]] = {
    ("authentication.k8s.io", "tokenreviews"): reviews.token_review,
    ("authentication.k8s.io", "selfsubjectreviews"): reviews.self_subject_review,
    ("authorization.k8s.io", "selfsubjectaccessreviews"): reviews.self_subject_access_review,
    ("authorization.k8s.io", "selfsubjectrulesreviews"): reviews.self_subject_rules_review,
    ("authorization.k8s.io", "subjectaccessreviews"): reviews.subject_access_review,
}
"""By group and plural: what answers the creation of an object that is not stored."""
_SUBRESOURCE_HANDLERS: Final[dict[tuple[str, str], Handler]] = {
    ("scale", "get"): write.get_scale,
    ("scale", "update"): write.update_scale,
    ("scale", "patch"): write.patch_scale,
    ("log", "get"): pod.log,
    ("exec", "get"): pod_exec.run,
    ("exec", "create"): pod_exec.run,
    ("binding", "create"): pod.bind,
    ("eviction", "create"): pod_eviction.evict,
    ("token", "create"): reviews.token,
}


class Dispatcher:
    """The one handler of the HTTP application."""

    def __init__(
        self,
        backend: Backend,
        access: Access,
        documents: Documents,
        writer: ObjectWriter,
        deleter: AdmittedDeleter,
        *,
        audit: AuditLog | None = None,
    ) -> None:
        self._backend = backend
        self._access = access
        self._documents = documents
        self._writer = writer
        self._deleter = deleter
        self._audit = audit

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer any request; nothing that a client sends makes it fail."""
        record = Record(request, self._backend.clock.now())
        if self._audit is None:
            return await self._published_outcome(request, record)
        await self._audit.wait_for_room()
        try:
            return await self._published_outcome(request, record)
        finally:
            self._audit.add(record.event(self._backend.clock.now()))

    async def _published_outcome(self, request: web.Request, record: Record) -> web.StreamResponse:
        response = await self._outcome(request, record)
        if not response.prepared:
            # Neither what was written nor what was read may be lost once somebody knows of it.
            await self._backend.storage.published()
        record.code = response.status
        return response

    async def _outcome(self, request: web.Request, record: Record) -> web.StreamResponse:
        try:
            sender = self._access.authenticator.authenticate(request.headers.get("Authorization"))
            record.sent_by(sender)
            user = acting_user(sender, request.headers, self._access.authorizer)
            if user is not sender:
                record.acting_as = user
            self._authorize(request, user, record)
            return await self._answer(request, user, record)
        except ApiError as error:
            # Its frames would keep what the request held, such as the address of a Service, until the next collection.
            record.failure = error.with_traceback(None)
            return failure(error)
        except UnknownPathError:
            return web.Response(status=404, text="404 page not found\n")
        except RecursionError:
            return failure(statuses.bad_request("the body is nested too deeply"))
        except Exception as error:
            if isinstance(error, ConnectionError) and (request.transport is None or request.transport.is_closing()):
                # Whatever is returned reaches nobody; what was raised would be logged as a failure of ours.
                return web.Response(status=CLIENT_CLOSED_REQUEST)
            log.exception("failed to answer a request", method=request.method, path=request.path)
            return failure(statuses.internal_error("the dev cluster has a bug; its log has the details"))

    def _authorize(self, request: web.Request, user: User, record: Record) -> None:
        """Refuse what the user may not do, before anything is said about what there is.

        Raises:
            ApiError: 403.
        """
        attributes = attributes_of(user, request.method, request.path, request.query)
        decision = self._access.authorizer.authorize(attributes)
        record.decided(decision)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    async def _answer(self, request: web.Request, user: User, record: Record) -> web.StreamResponse:
        document = await self._documents.find(request)
        if document is not None:
            return document
        target = resolve(self._backend.registry, request.method, request.path)
        call = Call(self._backend, self._writer, self._deleter, request, target, user, self._access, record)
        if target.definition.deprecation:
            call.warnings.add(target.definition.deprecation)
        try:
            return await _handler(target)(call)
        except ApiError as error:
            record.failure = error.with_traceback(None)
            return failure(error, call.warnings.texts)


def _handler(target: Target) -> Handler:
    if target.subresource:
        return _SUBRESOURCE_HANDLERS.get((target.subresource, target.verb)) or _OBJECT_HANDLERS[target.verb]
    resource = target.definition.resource
    return _REVIEW_HANDLERS.get((resource.group, resource.plural)) or _OBJECT_HANDLERS[target.verb]
