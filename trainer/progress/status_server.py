"""Status server: pods of a TrainJob post their progress to it (KEP-2779), as to that of the released Kubeflow Trainer.

    POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/<namespace>/trainjobs/<name>/status
    Authorization: Bearer <token of the pod's service account, made for this very TrainJob>

Every replica serves, whether it leads or not. The pod of the token must be one that the JobSet of the TrainJob has
made, and the API server confirms the token (TokenReview), so that it ends with its pod.

| a request | gets |
|---|---|
| that is accepted, or tells nothing | 200 with what was read |
| without such a token | 403 |
| about a TrainJob that does not exist; to any other path, or not by POST | 404 |
| with a body over 64 KiB; with wrong fields, which the message names | 413; 422 |
| too many of one TrainJob, or of all together | 429 |
| while the API server does not answer | 503 |
"""

from __future__ import annotations

import base64
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
import structlog
from aiohttp import web

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.progress import status_audience
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.access import BearerGate, bearer_token
from trainer.kube.clock import move_on_after
from trainer.kube.errors import (
    BadRequestError,
    ConfigurationError,
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
)
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics.certificates import ExpirySeries
from trainer.kube.objects import ObjectKey, is_controlled_by
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import PODS
from trainer.kube.rest.rate_limiter import RateLimiter
from trainer.kube.selection import Selection
from trainer.kube.serving.connection import ConnectionLimits
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer.kube.serving.tls import ServingTls
from trainer.kube.webhook.body import JSON, BodyReader, HttpError, failure
from trainer.progress.options import StatusServerOptions
from trainer.progress.primary_pod import is_made_of
from trainer.progress.push_request import BODY_LIMIT, parse_push
from trainer.progress.writer import write_pushed
from trainer.workloads import JOBSETS

if TYPE_CHECKING:
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object
    from trainer.kube.serving.certificates import CertificateSource

log = structlog.get_logger(__name__)

_PATH: Final = re.compile(
    r"/apis/trainer\.kubeflow\.org/v1alpha1/namespaces/([^/]{1,63})/trainjobs/([^/]{1,253})/status"
)
_ACCOUNT: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io/pod-"
_OWN_QPS, _OWN_BURST = 1.0, 10
"""Requests of one TrainJob: clients post each five seconds, and at the beginning and the end of a training at once."""
_REMEMBERED: Final = 4096
"""TrainJobs whose requests are counted; those that have posted the longest ago are forgotten."""
_PATIENCE: Final = 4.0
"""Seconds that a request waits for its turn; the clients wait five."""
_READ_TIMEOUT: Final = 10.0
_FINISH: Final = 5.0
"""Seconds that answers under way have when the server stops, as in the released Trainer."""


class StatusServer:
    """Takes the progress that pods post; the constructor adds it to the manager.

    Args:
        manager: runs it; its informers, clock, metrics and `api_reader` are used.
        certificates: where certificate and CA bundle come from.
        options: see its class.
        namespace: the only namespace whose TrainJobs are served. Default: None, all namespaces.
    """

    def __init__(
        self,
        manager: Manager,
        certificates: CertificateSource,
        options: StatusServerOptions | None = None,
        *,
        namespace: str | None = None,
    ) -> None:
        self._options = options or StatusServerOptions()
        self._client, self._clock = manager.api_reader, manager.clock
        self._certificates = certificates
        selection = Selection(namespace=namespace)
        self._train_jobs = manager.informer(TRAIN_JOBS, selection).lister
        self._jobsets = manager.informer(JOBSETS, selection).lister
        self._pods = manager.informer(PODS, Selection(namespace=namespace, label_selector=JOBSET_NAME)).lister
        self._gate = BearerGate(self._client, clock=self._clock)
        self._bodies = BodyReader(
            self._clock,
            max_bytes=BODY_LIMIT,
            max_buffered_bytes=BODY_LIMIT,
            timeout=_READ_TIMEOUT,
            content="the progress",
        )
        limit = self._options.limit
        self._turns = RateLimiter(*limit, clock=self._clock) if limit is not None else None
        self._own_turns: OrderedDict[ObjectKey, RateLimiter] = OrderedDict()
        self._tls = ServingTls(options=self._options.tls, expires=manager.metrics.series(ExpirySeries).of("status"))
        limits = ConnectionLimits(max_connections=500)
        http = HttpServerOptions(self._options.host, self._options.port, limits, self._tls.context)
        self._server = HttpServer("status", self._answer, http, clock=manager.clock, metrics=manager.metrics)
        manager.add(self.run, name="status server", group=Group.OTHERS, started=self.wait_for_start)
        manager.add_ready_check("status-server", self.check)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; known when it has started."""
        return self._server.address

    async def wait_for_start(self) -> None:
        """Wait until it listens."""
        await self._server.started.wait()

    async def check(self) -> None:
        """Ready check.

        Raises:
            KubeError: it does not listen.
        """
        if not self._server.started.is_set():
            raise KubeError(f"the status server has not started yet: {self._certificates.problem or 'it is about to'}")

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ConfigurationError: there was no certificate or CA bundle in time, or the address is in use or not ours.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._certificates.run, self._tls.install)
            await self._wait_for_certificate()
            await self._server.run(anyio.sleep_forever, grace=_FINISH)

    async def _wait_for_certificate(self) -> None:
        async with move_on_after(self._clock, self._options.certificate_timeout) as limit:
            await self._tls.wait_for_certificate()
            await self._certificates.ca.other_than(b"")  # by which pods verify it
        if limit.cancelled_caught:
            waited = f"{self._options.certificate_timeout:g} s"
            problem = self._certificates.problem or "there is no ca.crt beside tls.crt, by which pods could verify it"
            raise ConfigurationError(f"no certificate for the status server within {waited}: {problem}")

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        try:
            return await self._take(request)
        except HttpError as error:
            return failure(error)

    async def _take(self, request: web.BaseRequest) -> web.Response:
        found = _PATH.fullmatch(request.path)
        if found is None or request.method != "POST":
            raise HttpError(404, "NotFound", f"there is nothing to {request.method} here")
        key = ObjectKey(found[1], found[2])
        train_job = await self._authorized(key, request.headers.get("Authorization", ""))
        async with self._bodies.reading(request) as body:
            try:
                push = parse_push(body)
            except InvalidObjectError as error:
                raise HttpError(422, "Invalid", "; ".join(map(str, error.errors))) from None
        if push.trainer_status is not None:
            status = push.trainer_status.status(Instant.of(self._clock.now()))
            await self._wait_for_turn()
            try:
                await write_pushed(self._client, train_job, status)
            except KubeError as error:
                raise _refused(key, error) from error
        return web.json_response(push.to_object(), content_type=JSON)

    async def _authorized(self, key: ObjectKey, authorization: str) -> Object:
        """The TrainJob that the owner of a token may report about.

        Raises:
            HttpError: there is none, or it reports too often.
        """
        token = bearer_token(authorization)
        if token is None:
            raise HttpError(403, "Forbidden", "send the token of the pod in the header Authorization: Bearer <token>")
        # What is made up costs no review and decodes nothing: whoever sends it knows no pod of the TrainJob.
        claimed = _claimed_pod(token)
        pod = self._pods.peek(ObjectKey(key.namespace, claimed.name))
        if pod is None or pod.uid != claimed.uid:
            raise _no_pod_of(key, claimed)
        train_job = self._train_jobs.get(key)
        if train_job is None:
            # Names that do not exist are without number, so none of them may cost a review.
            raise HttpError(404, "NotFound", f"there is no TrainJob {key}")
        if not self._is_made_for(train_job, key, pod):
            raise _no_pod_of(key, claimed)
        self._count(key)
        try:
            user = await self._gate.user_of(token, (status_audience(*key),))
        except KubeError as error:
            log.warning("could not review the token of a pod", error=str(error))
            raise HttpError(503, "ServiceUnavailable", "the API server does not say whose token it is") from None
        if user is None or not _is_of(user, key.namespace, claimed):
            raise HttpError(403, "Forbidden", f"the API server knows no such token for {status_audience(*key)}")
        return train_job

    def _is_made_for(self, train_job: Object, key: ObjectKey, pod: CachedObject) -> bool:
        """Whether the JobSet of the TrainJob has made a pod."""
        jobset = self._jobsets.get(key)
        return jobset is not None and is_controlled_by(jobset, train_job) and is_made_of(jobset, pod.decode())

    def _count(self, key: ObjectKey) -> None:
        """Count a request of a TrainJob, none of which may take the turns of the others."""
        own = self._own_turns.setdefault(key, RateLimiter(_OWN_QPS, _OWN_BURST, clock=self._clock))
        self._own_turns.move_to_end(key)
        while len(self._own_turns) > _REMEMBERED:
            self._own_turns.popitem(last=False)
        if not own.take():
            text = f"TrainJob {key} reports more than {_OWN_QPS:g} times a second: once in five seconds is enough"
            raise HttpError(429, "TooManyRequests", text, retry_after=1)

    async def _wait_for_turn(self) -> None:
        if self._turns is None:
            return
        async with move_on_after(self._clock, _PATIENCE) as limit:
            await self._turns.wait()
        if limit.cancelled_caught:
            text = "too many trainings report at once: see statusServer.qps of the manager's configuration"
            raise HttpError(429, "TooManyRequests", text, retry_after=5)


class _Bound(msgspec.Struct, frozen=True):
    """The pod that a token is bound to; empty for a token that is not."""

    name: str = ""
    uid: str = ""


class _Private(msgspec.Struct):
    pod: _Bound = _Bound()


class _Claims(msgspec.Struct, rename={"private": "kubernetes.io"}):
    private: _Private


_claims = msgspec.json.Decoder(_Claims)


def _claimed_pod(token: str) -> _Bound:
    """The pod that a token (RFC 7519) says it is bound to; whether that is true, the API server says."""
    payload = token.partition(".")[2].partition(".")[0]
    try:
        return _claims.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))).private.pod
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return _Bound()


def _no_pod_of(key: ObjectKey, claimed: _Bound) -> HttpError:
    who = f"pod {claimed.name}" if claimed.name else "no pod"
    return HttpError(403, "Forbidden", f"the token is that of {who}, which is no pod of TrainJob {key}")


def _is_of(user: Object, namespace: str, pod: _Bound) -> bool:
    """Whether a user is a service account of the namespace, with a token that is bound to the pod."""
    extra = user.get("extra") or {}
    bound = [extra.get(f"{_EXTRA}{attribute}") for attribute in ("name", "uid")]
    return str(user["username"]).startswith(f"{_ACCOUNT}{namespace}:") and bound == [[pod.name], [pod.uid]]


def _refused(key: ObjectKey, error: KubeError) -> HttpError:
    """The answer when the API server has not taken the status."""
    match error:
        case NotFoundError():
            return HttpError(404, "NotFound", f"there is no TrainJob {key}")
        case InvalidError() | BadRequestError():
            return HttpError(422, "Invalid", str(error))
        case ConflictError():
            return HttpError(409, "Conflict", str(error))
    log.warning("could not write the progress that a pod has sent", train_job=str(key), error=str(error))
    return HttpError(503, "ServiceUnavailable", "the API server has not taken the progress; try again", retry_after=1)
