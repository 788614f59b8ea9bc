"""The server that pods of the released Kubeflow Trainer send their progress to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.configuration.bind_address import Port


class StatusServerConfiguration(ApiModel):
    """Read so that files of the released manager are accepted; there it has no effect without the gate TrainJobStatus.

    That gate cannot be switched on here: progress is read from the logs of the pods.
    """

    port: Port = 10443
    """Port of the server. Defaults to 10443, as in the released manager; nothing listens on it."""
    qps: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """Requests per second to the API server. Defaults to 5, as in the released manager; none are sent."""
    burst: Annotated[int, Field(ge=0, le=2**31 - 1)] = 10
    """Requests that may go at once before qps counts. Defaults to 10, as in the released manager; none are sent."""
