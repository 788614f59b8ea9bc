"""Converters: how objects of a definition become objects of another version (`spec.conversion`)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, Protocol

from trainer.kube.api_semantics import statuses
from trainer_devcluster.apiserver.conversion import review
from trainer_devcluster.apiserver.conversion.review import REVIEW_VERSIONS, ReviewError, described
from trainer_devcluster.apiserver.webhooks.client import PostError
from trainer_devcluster.apiserver.webhooks.client_config import ClientConfig
from trainer_devcluster.apiserver.webhooks.trust import TrustError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trainer.kube.errors import ApiError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.webhooks.client import WebhookClient

_TIMEOUT_SECONDS: Final = 30


class Converter(Protocol):
    """Brings objects into another version."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """The objects in a version, in their order; what is given is not changed.

        Args:
            objects: of one kind, none of them in the wanted version.
            api_version: group and version that is wanted.

        Raises:
            ApiError: 500, they cannot be converted.
        """


class RenamingConverter:
    """Strategy None: all versions have the same fields."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Change nothing but the apiVersion."""
        return [{**obj, "apiVersion": api_version} for obj in objects]


class WebhookConverter:
    """Strategy Webhook: a webhook converts all objects of a list in one call."""

    def __init__(self, client: WebhookClient, conversion: Object) -> None:
        """Read the `spec.conversion` of a valid definition."""
        webhook = conversion["webhook"]
        self._client = client
        self._config = ClientConfig.of(webhook["clientConfig"])
        offered = webhook["conversionReviewVersions"]
        self._review_version = next(version for version in offered if version in REVIEW_VERSIONS)

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Have the webhook convert the objects; of their metadata it changes labels and annotations only.

        Raises:
            ApiError: 500, the webhook cannot be called, says that it has failed, or spoils an object.
        """
        if not objects:
            return []
        failed = f"conversion webhook for {described(objects[0])}"
        uid = str(uuid.uuid4())
        body = review.encode(objects, api_version, self._review_version, uid)
        try:
            content = await self._client.post(self._config, body, _TIMEOUT_SECONDS)
            converted = review.decode(content, self._review_version, uid)
        except (PostError, TrustError, ReviewError) as error:
            raise _failure(f"{failed} failed: {error}") from error
        if len(converted) != len(objects):
            raise _failure(f"{failed} returned {len(converted)} objects, expected {len(objects)}")
        pairs = enumerate(zip(objects, converted, strict=True))
        return [
            _checked(before, after, api_version, f"{failed} returned invalid", index)
            for index, (before, after) in pairs
        ]


def _checked(original: Object, converted: Any, api_version: str, failed: str, index: int) -> Object:
    if not isinstance(converted, dict):
        raise _failure(f"{failed} converted object at index {index}: Object 'Kind' is missing")
    received = converted.get("apiVersion") or ""
    if received != api_version:
        problem = f"invalid groupVersion (expected {api_version}, received {received})"
        raise _failure(f"{failed} converted object at index {index}: {problem}")
    try:
        review.check_identity(original, converted)
    except ReviewError as error:
        raise _failure(f"{failed} converted object at index {index}: {error}") from error
    try:
        return review.with_metadata_of(original, converted)
    except ReviewError as error:
        raise _failure(f"{failed} metadata in object at index {index}: {error}") from error


def _failure(message: str) -> ApiError:
    # The real server answers with an unspecific 500: no reason, the text alone.
    return statuses.failure(500, "", message)
