"""Admission of one request: which webhooks are called, in what order, and how their answers count."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import anyio
import msgspec
import structlog

from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.admission import review
from trainer_devcluster.apiserver.admission.attributes import Attributes, RuleTarget
from trainer_devcluster.apiserver.admission.conditions import ConditionError, all_hold
from trainer_devcluster.apiserver.admission.configurations import MUTATING, VALIDATING, Configurations, Invocation
from trainer_devcluster.apiserver.admission.review import WebhookDecision
from trainer_devcluster.apiserver.admission.webhook import Webhook, selects
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.storage.storage import Storage
from trainer_devcluster.apiserver.webhooks.client import PostError, TrustError, WebhookClient
from trainer_devcluster.apiserver.wire import answers
from trainer_devcluster.apiserver.wire.headers import Warnings
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.api_semantics.json_patch import json_patch
from trainer_kube_testing.api_semantics.patches import PatchError


class CallError(Exception):
    """A webhook could not be called, or its answer is of no use; its failure policy decides what follows."""

    def __init__(self, webhook: Webhook, problem: str) -> None:
        super().__init__(f'failed calling webhook "{webhook.name}": {problem}')


class Caller:
    """Speaks AdmissionReview with webhooks."""

    def __init__(self, client: WebhookClient) -> None:
        self._client = client

    async def call(self, webhook: Webhook, request: Object, *, mutating: bool) -> WebhookDecision:
        """Have a request reviewed.

        Args:
            webhook: whom to ask.
            request: the `request` of the review.
            mutating: whether the answer may have a patch.

        Raises:
            CallError: no proper answer came in time.
        """
        body = review.encode(request)
        try:
            content = await self._client.post(webhook.client, body, webhook.timeout)
        except TrustError as error:
            raise CallError(webhook, f"could not get REST client: {error}") from error
        except PostError as error:
            raise CallError(webhook, f"failed to call webhook: {error}") from error
        try:
            return review.decode(content, request["uid"], mutating=mutating)
        except review.ResponseError as error:
            raise CallError(webhook, f"received invalid webhook response: {error}") from error


log = structlog.get_logger(__name__)


class Admission:
    """Asks the webhooks of the cluster about requests. No lock is held meanwhile: what was read may change."""

    def __init__(self, storage: Storage, registry: ResourceRegistry, caller: Caller) -> None:
        self._storage = storage
        self._registry = registry
        self._caller = caller
        self._mutating = Configurations(storage, registry, MUTATING)
        self._validating = Configurations(storage, registry, VALIDATING)

    def mutates(self, endpoint: RuleTarget) -> bool:
        """Whether any mutating webhook asks to see such requests."""
        return bool(self._mutating.concerned(endpoint))

    def validates(self, endpoint: RuleTarget) -> bool:
        """Whether any validating webhook asks to see such requests."""
        return bool(self._validating.concerned(endpoint))

    def concerns(self, endpoint: RuleTarget) -> bool:
        """Whether any webhook asks to see such requests."""
        return self.mutates(endpoint) or self.validates(endpoint)

    async def mutate(
        self,
        attributes: Attributes,
        warnings: Warnings,
        accept: Callable[[Object], Object] = lambda obj: obj,
        readmit: Callable[[Object], Object] | None = None,
    ) -> Object | None:
        """The object of a request as the mutating webhooks leave it.

        Args:
            attributes: the request.
            warnings: take in those of the webhooks.
            accept: prunes and defaults what a webhook has made of the object, in place. Default: leaves it as it is.
            readmit: makes of an object that webhooks have changed what the server's own admission makes of it, before
                they are asked again. Default: nothing.

        Raises:
            ApiError: a webhook denies the request, cannot be called, or spoils the object.
        """
        invocations = self._mutating.concerned(attributes.endpoint)
        reinvocation = Reinvocation()
        for again in (False, True):
            if again and readmit is not None and attributes.object is not None:
                admitted = readmit(attributes.object)
                if admitted != attributes.object:
                    reinvocation.repeat_all()
                    attributes = replace(attributes, object=admitted)
            for invocation in invocations:
                if again and not reinvocation.repeats(invocation.webhook):
                    continue
                before = attributes.object
                called, attributes = await self._mutate_once(invocation, attributes, warnings, accept)
                if called:
                    reinvocation.note(invocation.webhook, changed=attributes.object != before)
            if not reinvocation.needed:
                break
        return attributes.object

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Let all validating webhooks look at a request, at the same time.

        Raises:
            ApiError: one of them denies it or cannot be called; of several the first in their order counts.
        """
        invocations = self._validating.concerned(attributes.endpoint)
        failures: dict[int, ApiError] = {}
        verdicts: dict[int, WebhookDecision] = {}

        async def ask(position: int, invocation: Invocation) -> None:
            try:
                verdict = await self._ask(invocation, attributes, mutating=False)
            except ApiError as error:
                failures[position] = error
            else:
                if verdict is not None:
                    verdicts[position] = verdict

        async with anyio.create_task_group() as tasks:
            for position, invocation in enumerate(invocations):
                tasks.start_soon(ask, position, invocation)
        for position, verdict in sorted(verdicts.items(), key=lambda entry: entry[0]):
            warnings.add(*verdict.warnings)
            if not verdict.allowed:
                failures[position] = review.denial(invocations[position].webhook.name, verdict.result)
        if failures:
            first = failures[min(failures)]
            failures.clear()
            try:
                raise first
            finally:
                # The error refers to this frame; without the way back all that the request holds is freed at once.
                del first

    async def _mutate_once(
        self, invocation: Invocation, attributes: Attributes, warnings: Warnings, accept: Callable[[Object], Object]
    ) -> tuple[bool, Attributes]:
        """Whether the webhook was called, and the request after it."""
        webhook = invocation.webhook
        verdict = await self._ask(invocation, attributes, mutating=True)
        if verdict is None:
            return False, attributes
        warnings.add(*verdict.warnings)
        if not verdict.allowed:
            raise review.denial(webhook.name, verdict.result)
        try:
            operations = _operations(webhook, verdict.patch)
        except CallError as error:
            self._give_way(webhook, error)
            return True, attributes
        if not operations:
            return True, attributes
        if attributes.object is None:
            message = f'admission webhook "{webhook.name}" attempted to modify the object, which is not supported for '
            raise statuses.internal_error(message + "this operation")
        try:
            seen = self._in_version(attributes.object, invocation.endpoint.resource)
            patched = json_patch(seen, operations)
            accepted = accept(self._in_version(patched, attributes.endpoint.resource))
        except PatchError as error:
            raise statuses.internal_error(error.message) from error
        except RecursionError as error:
            text = f'the patch of admission webhook "{webhook.name}" nests the object too deeply'
            raise statuses.internal_error(text) from error
        return True, replace(attributes, object=accepted)

    async def _ask(self, invocation: Invocation, attributes: Attributes, *, mutating: bool) -> WebhookDecision | None:
        """Call a webhook; None if it is not called, or if its failure is ignored."""
        webhook, endpoint = invocation.webhook, invocation.endpoint
        if not selects(webhook, attributes, self._storage):
            return None
        request = review.request_of(await self._as_wanted(attributes, endpoint), endpoint, str(uuid.uuid4()))
        try:
            if webhook.conditions and not all_hold(webhook.conditions, request):
                return None
        except ConditionError as error:
            if webhook.fails_open:
                return None
            raise answers.forbidden(attributes.endpoint.resource, attributes.name, str(error)) from error
        if attributes.dry_run and not webhook.supports_dry_run:
            raise statuses.bad_request(f'admission webhook "{webhook.name}" does not support dry run')
        try:
            return await self._caller.call(webhook, request, mutating=mutating)
        except CallError as error:
            self._give_way(webhook, error)
            return None

    async def _as_wanted(self, attributes: Attributes, endpoint: RuleTarget) -> Attributes:
        """The request with its objects in the version that a webhook has asked for."""
        if endpoint == attributes.endpoint:
            return attributes
        new, old = attributes.object, attributes.old
        return replace(
            attributes,
            object=None if new is None else self._in_version(new, endpoint.resource),
            old=None if old is None else self._in_version(old, endpoint.resource),
        )

    def _in_version(self, obj: Object, resource: Resource) -> Object:
        """An object in another version of its kind."""
        if obj.get("kind") != resource.kind or obj.get("apiVersion") == resource.api_version:
            return obj
        definition = self._registry.find(resource.group, resource.version, resource.plural)
        if definition is None or definition.versions is None:
            return {**obj, "apiVersion": resource.api_version}
        return definition.versions.convert(obj, resource.api_version)

    @staticmethod
    def _give_way(webhook: Webhook, error: CallError) -> None:
        """Go on without a webhook that is not to be relied on, or fail the request."""
        log.warning("failed to call webhook", error=str(error), fails_open=webhook.fails_open)
        if not webhook.fails_open:
            raise statuses.internal_error(str(error)) from error


def _operations(webhook: Webhook, content: bytes) -> list[object]:
    if not content:
        return []
    try:
        return msgspec.json.decode(content, type=list[object])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise CallError(webhook, f"received undecodable patch in webhook response: {error}") from error
    except RecursionError as error:
        raise CallError(webhook, "received undecodable patch in webhook response: exceeded max depth") from error


class Reinvocation:
    """Follows the calls of one request; there is one second round at most."""

    def __init__(self) -> None:
        self.needed = False
        """Whether a second round has to be made."""
        self._called: set[tuple[str, int]] = set()
        self._again: set[tuple[str, int]] = set()

    def note(self, webhook: Webhook, *, changed: bool) -> None:
        """Take in that a webhook has been called; a change makes it necessary to repeat those before it."""
        if changed:
            self.repeat_all()
            self.needed = True
        if webhook.reinvocable:
            self._called.add((webhook.configuration, webhook.index))

    def repeat_all(self) -> None:
        """Repeat those that have been called so far."""
        self._again |= self._called
        self._called.clear()

    def repeats(self, webhook: Webhook) -> bool:
        """Whether the second round calls a webhook."""
        return (webhook.configuration, webhook.index) in self._again
