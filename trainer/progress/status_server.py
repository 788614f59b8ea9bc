"""Status server: pods of a TrainJob post their progress to it (KEP-2779), as to that of Kubeflow Trainer (Go).

    POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/<namespace>/trainjobs/<name>/status
    Authorization: Bearer <token of the pod's service account, made for this very TrainJob>

Every replica serves, whether it leads or not. The pod of the token must be one that the JobSet of the TrainJob has
made, and the API server confirms the token (TokenReview), so that it ends with its pod.

| a request | gets |
|---|---|
| that is accepted, or says nothing | 200 with what was read; NaN in place of a number is left out |
| without such a token | 403 |
| about a TrainJob that does not exist; to any other path, or not by POST | 404 |
| with a body over 64 KiB; with wrong fields, which the message names | 413; 422 |
| too many of one TrainJob, or with made-up tokens from elsewhere than its pods, or of all together | 429 |
| while the API server does not answer | 503 |
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

import anyio
import msgspec
from aiohttp import web

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.progress import status_audience
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.access import BearerGate, bearer_token
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.clock import move_on_after
from trainer.kube.errors import (
    BadRequestError,
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
)
from trainer.kube.field_errors import FieldError
from trainer.kube.json_text import decode_json
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics.servers import ExpirySeries
from trainer.kube.objects import Object, ObjectKey, is_controlled_by, uid_of
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import PODS
from trainer.kube.rest.rate_limiter import RateLimiter
from trainer.kube.selection import Selection
from trainer.kube.serving.certificates import CertificateSource
from trainer.kube.serving.connection import ConnectionLimits
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer.kube.serving.tls import ServingTls, TlsOptions
from trainer.kube.webhook.body import JSON, HttpError, failure, read_body
from trainer.progress.metrics import ProgressSeries
from trainer.progress.primary import is_made_of
from trainer.progress.push_request import BODY_LIMIT, parse_push
from trainer.progress.writer import write_pushed
from trainer.workloads import JOBSETS

log = get_logger(__name__)

_PATH: Final = re.compile(
    r"/apis/trainer\.kubeflow\.org/v1alpha1/namespaces/([^/]{1,63})/trainjobs/([^/]{1,253})/status"
)
_ACCOUNT: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io/pod-"
_OWN_QPS, _OWN_BURST = 1.0, 10
"""Requests of one TrainJob: clients post each five seconds, and at the beginning and the end of a training at once."""
_REMEMBERED: Final = 4096
"""Counts of requests, up to three for each TrainJob; those that were used the longest ago are forgotten."""
_WAIT_TIMEOUT: Final = 4.0
"""Seconds that a request waits for the limiter; the clients wait five."""
_READ_TIMEOUT: Final = 10.0
_FINISH: Final = 5.0
"""Seconds that answers under way have when the server stops, as in Kubeflow Trainer (Go)."""


@dataclass(frozen=True, slots=True)
class StatusServerOptions:
    """Where the server listens, and its limits."""

    host: str = ""
    """Address to listen on. Default: "", all addresses of IPv4 and IPv6, since pods connect from elsewhere."""
    port: int = 10443
    """Port; 0 takes a free one, see `StatusServer.address`. Default: 10443, as in Kubeflow Trainer (Go)."""
    limit: tuple[float, int] | None = (5.0, 10)
    """Writes per second, and how many at once; None: no limit. Default: those of Kubeflow Trainer (Go)."""
    tls: TlsOptions = field(default_factory=TlsOptions)
    """TLS versions and cipher suites. Default: those of its class."""


class StatusServer:
    """Takes the progress that pods of one namespace, or of all, post; the constructor adds it to the manager."""

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
        limit = self._options.limit
        self._limiter = RateLimiter(*limit, clock=self._clock) if limit is not None else None
        self._own_limiters: BoundedDict[tuple[ObjectKey, str], RateLimiter] = BoundedDict(_REMEMBERED)
        self._warned: BoundedDict[str, bool] = BoundedDict(_REMEMBERED)
        self._series = manager.metrics.series(ProgressSeries)
        self._lines: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
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
        """Ready check: raises a KubeError until it listens."""
        if not self._server.started.is_set():
            raise KubeError(f"the status server has not started yet: {self._certificates.problem or 'it is about to'}")

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ConfigurationError: there was no certificate or CA bundle in time, or the address is in use or not ours.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._certificates.run, self._tls.install)
            await self._tls.require_certificate(
                self._certificates, self._clock, what="certificate for the status server", with_authority=True
            )
            await self._server.run(anyio.sleep_forever, grace=_FINISH)

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
        train_job = await self._authorized(key, request.headers.get("Authorization", ""), request.remote or "")
        self._count(key, "posts")
        try:
            push, dropped = parse_push(await self._body(request))
        except InvalidObjectError as error:
            raise HttpError(422, "Invalid", "; ".join(map(str, error.errors))) from None
        if dropped:
            self._count_dropped(key, uid_of(train_job), dropped)
        if push.trainer_status is not None:
            now = self._clock.now()
            status = push.trainer_status.status(Instant.of(now))
            await self._wait_for_limiter(key.namespace)
            try:
                await write_pushed(self._client, train_job, status, now)
            except KubeError as error:
                raise _refused(key, error) from error
        return web.json_response(push.to_object(), content_type=JSON)

    async def _body(self, request: web.BaseRequest) -> bytearray:
        async with move_on_after(self._clock, _READ_TIMEOUT):
            return await read_body(request, BODY_LIMIT, content="the progress")
        raise HttpError(408, "Timeout", f"the body did not arrive within {_READ_TIMEOUT:g} s")

    async def _authorized(self, key: ObjectKey, authorization: str, remote: str) -> Object:
        """The TrainJob that the owner of the token in a header may report about.

        Raises:
            HttpError: there is none, or too many tokens are to be reviewed.
        """
        token = bearer_token(authorization)
        if token is None:
            raise HttpError(403, "Forbidden", "send the token of the pod in the header Authorization: Bearer <token>")
        # A made-up token costs no review and decodes nothing: its sender knows no pod of the TrainJob.
        claimed = _claimed_pod(token)
        pod = self._pods.peek(ObjectKey(key.namespace, claimed.name))
        if pod is None or pod.uid != claimed.uid:
            raise _no_pod_of(key, claimed)
        train_job = self._train_jobs.get(key)
        if train_job is None:
            # Names that do not exist are without number, so none of them may cost a review.
            raise HttpError(404, "NotFound", f"there is no TrainJob {key}")
        claimed_pod = pod.decode()
        if not self._is_made_for(train_job, key, claimed_pod):
            raise _no_pod_of(key, claimed)
        # Many can find out name and uid of a pod, and send made-up tokens, but not from its address.
        self._count(key, "reviews of its pods" if _is_at(claimed_pod, remote) else "other reviews")
        try:
            user = await self._gate.user_of(token, (status_audience(*key),))
        except KubeError as error:
            log.warning("could not review the token of a pod", error=str(error))
            raise HttpError(503, "ServiceUnavailable", "the API server does not say whose token it is") from None
        if user is None or not _is_of(user, key.namespace, claimed):
            raise HttpError(403, "Forbidden", f"the API server knows no such token for {status_audience(*key)}")
        return train_job

    def _is_made_for(self, train_job: Object, key: ObjectKey, pod: Object) -> bool:
        """Whether the JobSet of the TrainJob has made a pod."""
        jobset = self._jobsets.get(key)
        return jobset is not None and is_controlled_by(jobset, train_job) and is_made_of(jobset, pod)

    def _count(self, key: ObjectKey, what: str) -> None:
        """Count what a request about a TrainJob costs; none may take the turns of the others."""
        own = self._own_limiters.get((key, what)) or RateLimiter(_OWN_QPS, _OWN_BURST, clock=self._clock)
        self._own_limiters[key, what] = own
        if not own.take():
            text = f"TrainJob {key} reports more than {_OWN_QPS:g} times a second: once in five seconds is enough"
            raise HttpError(429, "TooManyRequests", text, retry_after=1)

    def _count_dropped(self, key: ObjectKey, uid: str, dropped: Sequence[FieldError]) -> None:
        """Count values that are not finite, and log the first ones of each TrainJob."""
        self._series.dropped_values.inc(len(dropped))
        if self._warned.get(uid) is None:
            log.warning("dropped values of progress that was posted", train_job=str(key), first=str(dropped[0]))
        self._warned[uid] = True

    async def _wait_for_limiter(self, namespace: str) -> None:
        """Wait in the line of a namespace; the first of each line waits for the limiter."""
        if self._limiter is None:
            return
        line = self._lines.setdefault(namespace, anyio.Lock())
        async with move_on_after(self._clock, _WAIT_TIMEOUT) as limit, line:
            await self._limiter.wait()
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
        return decode_json(_claims, base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))).private.pod
    except (ValueError, msgspec.DecodeError):
        return _Bound()


def _is_at(pod: Object, remote: str) -> bool:
    """Whether a request comes from the address of a pod, where no proxy stands between them."""
    addresses = [each.get("ip") for each in (pod.get("status") or {}).get("podIPs") or ()]
    return remote.removeprefix("::ffff:") in addresses


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
