"""Caller: has requests reviewed by webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer_devcluster.apiserver.admission import review
from trainer_devcluster.apiserver.webhooks.client import PostError, TrustError

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.admission.review import Verdict
    from trainer_devcluster.apiserver.admission.webhook import Webhook
    from trainer_devcluster.apiserver.webhooks.client import WebhookClient


class CallError(Exception):
    """A webhook could not be called, or its answer is of no use; its failure policy decides what follows."""

    def __init__(self, webhook: Webhook, problem: str) -> None:
        super().__init__(f'failed calling webhook "{webhook.name}": {problem}')


class Caller:
    """Speaks AdmissionReview with webhooks."""

    def __init__(self, client: WebhookClient) -> None:
        self._client = client

    async def call(self, webhook: Webhook, request: Object, *, mutating: bool) -> Verdict:
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
