"""What the manager writes to its log."""

from __future__ import annotations

from typing import Literal

from trainer.api.model import ApiModel


class LoggingConfiguration(ApiModel):
    """The log of the manager, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe events that are written. Defaults to info: what changes, not each look at it."""
    format: Literal["auto", "json", "text"] = "auto"
    """One JSON object per line, or text for people. Defaults to auto: text on a terminal, JSON elsewhere."""

    @property
    def as_json(self) -> bool | None:
        """Whether JSON is written; None: as it fits where standard error goes."""
        return {"auto": None, "json": True, "text": False}[self.format]
