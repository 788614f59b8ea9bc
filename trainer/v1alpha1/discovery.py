"""Finds out which version of TrainJobs and runtimes the cluster serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import Client, RawClient
from trainer.kube.clock import Clock
from trainer.kube.errors import ConfigurationError, KubeError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.resource import Resource
from trainer.v1alpha1.client import V1Alpha1Client
from trainer.v1alpha1.status import FURTHER_CONDITIONS

log = get_logger(__name__)

Version: TypeAlias = Literal["v1alpha1", "v2alpha1"]

_GROUP: Final = f"/apis/{TRAIN_JOBS.group}"
_SCHEMAS: Final = f"/openapi/v3/apis/{TRAIN_JOBS.group}/v1alpha1"
_INTERVAL: Final = 60.0
"""Seconds between two looks at what is served."""


class ServedVersionChangedError(ConfigurationError):
    """The cluster serves another version than at the start; a new process works with it."""


@dataclass(frozen=True, slots=True)
class Served:
    """The version that this process works with."""

    version: Version
    is_extended: bool = True
    """Whether the CRDs of v1alpha1 have the optional fields of config/v1alpha1/crd; of no meaning for v2alpha1."""

    def client(self, client: Client) -> Client:
        """A client whose users see TrainJobs and runtimes converted to v2alpha1."""
        return client if self.version == "v2alpha1" else V1Alpha1Client(client, is_extended=self.is_extended)

    def resource(self, resource: Resource) -> Resource:
        """TrainJobs or runtimes as the cluster stores them, which `client` does not decode."""
        return msgspec.structs.replace(resource, version=self.version)


V2ALPHA1: Final = Served("v2alpha1")


async def find_served(client: RawClient, pinned: Version | None = None) -> Served:
    """The version to work with: the pinned one, else v2alpha1 where it is served, else v1alpha1.

    Where no CRDs are installed yet, or the API server does not answer, it is the pinned one or v2alpha1: the informers
    wait for the CRDs.

    Args:
        client: of the cluster.
        pinned: by the configuration. Defaults to None, what the cluster serves.

    Raises:
        ConfigurationError: the cluster serves other versions only; names them, and the remedy.
    """
    versions = await served_versions(client)
    if not versions:
        return Served(pinned or "v2alpha1")
    if pinned is not None and pinned not in versions:
        raise ConfigurationError(
            f"controller.apiVersion is {pinned}, and the cluster serves {TRAIN_JOBS.group} as "
            f"{', '.join(versions)}: apply the CRDs of {pinned}, or leave the setting out"
        )
    if pinned != "v1alpha1" and "v2alpha1" in versions:
        if "v1alpha1" in versions:
            log.warning("works with v2alpha1, although v1alpha1 is served as well", served=versions)
        return V2ALPHA1
    if "v1alpha1" in versions:
        return Served("v1alpha1", is_extended=await _is_extended(client))
    raise ConfigurationError(
        f"the cluster serves {TRAIN_JOBS.group} as {', '.join(versions)}, and this manager works with v2alpha1 or "
        "v1alpha1: apply the CRDs of one of them (trainer crds)"
    )


async def watch_served(client: RawClient, served: Served, clock: Clock) -> None:
    """Run until the cluster no longer serves the version, or serves it with other optional fields.

    Raises:
        ServedVersionChangedError: it does.
    """
    while True:
        await clock.sleep(_INTERVAL)
        versions = await served_versions(client)
        if versions and served.version not in versions:
            raise ServedVersionChangedError(
                f"the cluster serves {TRAIN_JOBS.group} as {', '.join(versions)} now, and no longer as {served.version}"
            )
        if versions and served.version == "v1alpha1" and await _is_extended(client) != served.is_extended:
            raise ServedVersionChangedError("the CRDs of v1alpha1 have other optional fields now")


async def served_versions(client: RawClient) -> list[str]:
    """The served versions; none if nothing is installed or the API server does not answer."""
    try:
        group = await client.request("GET", _GROUP)
    except NotFoundError:
        return []
    except KubeError as error:
        log.info("could not find out which versions are served", group=TRAIN_JOBS.group, error=str(error))
        return []
    return sorted(entry["version"] for entry in group.get("versions") or [])


async def _is_extended(client: RawClient) -> bool:
    """Whether the status has our optional fields.

    Raises:
        KubeError: the API server did not answer.
    """
    document = await client.request("GET", _SCHEMAS)
    schemas: dict[str, Any] = (document.get("components") or {}).get("schemas") or {}
    for schema in schemas.values():
        kinds = schema.get("x-kubernetes-group-version-kind") or []
        if any(each.get("kind") == TRAIN_JOBS.kind for each in kinds):
            status = (schema.get("properties") or {}).get("status") or {}
            return FURTHER_CONDITIONS in (status.get("properties") or {})
    return False
