"""A CustomResourceDefinition that is older than this process, and lacks fields or values that it writes."""

from __future__ import annotations

import math
from typing import Final

from trainer.kube.clock import Clock
from trainer.kube.errors import ApiError, InvalidError

_UNDECLARED: Final = "field not declared in schema"
"""What the API server says where the schema lacks a field that is applied."""
_REMEMBERED_SECONDS: Final = 600.0
"""After these seconds it is tried again: the definition may have been replaced."""


class OlderDefinition:
    """What is known of the definition from the answers of the API server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = -math.inf

    @property
    def is_present(self) -> bool:
        """Whether the API server has refused what this version has added, within the last ten minutes."""
        return self._clock.monotonic() < self._until

    def learn(self, error: Exception, *enumerations: str) -> bool:
        """Whether an error says that the definition is older, which is remembered then.

        Args:
            error: raised by a write.
            enumerations: fields to which this version has added values, such as `status.state`.
        """
        is_older = isinstance(error, ApiError) and (
            _UNDECLARED in str(error)
            or (isinstance(error, InvalidError) and any(each.get("field") in enumerations for each in error.causes))
        )
        if is_older:
            self._until = self._clock.monotonic() + _REMEMBERED_SECONDS
        return is_older
