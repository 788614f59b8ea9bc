"""How hard the API server is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.kube.field_errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError


class ClientConnectionConfiguration(ApiModel):
    """A limit on the requests of this manager."""

    qps: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Requests per second, in the long run; 0: no limit. Defaults to 0: the API server's priority and fairness knows
    better what it can take, and a limit here only makes people wait."""
    burst: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Requests that may go at once before qps counts. Defaults to 0: twice qps, the proportion of client-go."""

    @property
    def limit(self) -> tuple[float, int | None] | None:
        """Requests per second and, if it is not to be twice that, at once; None: no limit."""
        return (self.qps, self.burst or None) if self.qps else None

    def errors(self, path: str) -> Iterator[FieldError]:
        """What does not fit together."""
        if self.burst and not self.qps:
            yield invalid(f"{path}.burst", self.burst, "has no effect without qps: set qps too, or leave burst out")
