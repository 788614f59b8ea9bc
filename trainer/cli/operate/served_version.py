"""Which version of our kinds a cluster serves: the CRDs of the released Kubeflow Trainer have the names of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ConfigurationError, KubeError, NotFoundError

if TYPE_CHECKING:
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)


class RawClient(Protocol):
    """A client that can send requests beyond the typed ones."""

    async def request(self, method: str, path: str) -> Object:
        """Send a request without a body and return the answer."""


async def require_own_version(client: RawClient) -> None:
    """Check that the CRDs of the cluster are not those of another Trainer.

    No CRDs at all are for the informers, which wait for them; so is an API server that does not answer.

    Raises:
        ConfigurationError: the cluster serves our kinds, and not in our version; the message names the remedy.
    """
    try:
        group = await client.request("GET", f"/apis/{TRAIN_JOBS.group}")
    except NotFoundError:
        return
    except KubeError as error:
        log.warning("could not find out which versions are served", group=TRAIN_JOBS.group, error=str(error))
        return
    served = sorted(entry["version"] for entry in group.get("versions") or [])
    if not served or TRAIN_JOBS.version in served:
        return
    raise ConfigurationError(
        f"the cluster serves {TRAIN_JOBS.group} as {', '.join(served)}, and this manager works with "
        f"{TRAIN_JOBS.version}: the CRDs of another Kubeflow Trainer are installed; remove that Trainer and its CRDs "
        'and apply those of this one, as docs/install.md says under "Beside the released Kubeflow Trainer"'
    )
