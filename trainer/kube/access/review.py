"""Reviews: questions that are put to the API server by creating an object that it answers and does not keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.clock import move_on_after
from trainer.kube.errors import ApiError, KubeError, TransportError

if TYPE_CHECKING:
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

TIMEOUT = 10.0
"""Seconds for one review, as in controller-runtime."""


async def send_review(client: Client, resource: Resource, spec: Object, *, clock: Clock, secret: str = "") -> Object:
    """The status of the answer.

    Args:
        client: what asks.
        resource: of the review.
        spec: the question.
        clock: measures the time.
        secret: what must not appear in errors, since the question contains it. Default: nothing.

    Raises:
        KubeError: there is no answer; its text says what was asked for, and has no secret.
    """
    review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
    try:
        async with move_on_after(clock, TIMEOUT):
            status = (await client.create(resource, review)).get("status")
            return status if isinstance(status, dict) else {}
    except KubeError as error:
        text = str(error).replace(secret, "[redacted]") if secret else str(error)
        code = f" ({error.code})" if isinstance(error, ApiError) else ""
        raise KubeError(f"the API server does not answer a {resource.kind}{code}: {text}") from None
    raise TransportError(f"the API server did not answer a {resource.kind} within {TIMEOUT:g} s")
