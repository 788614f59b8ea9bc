"""The part of the manager's configuration that is about plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from trainer.api.model import ApiModel, JsonObject
from trainer.kube.field_errors import duplicate, not_supported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.kube.field_errors import FieldError


class PluginsConfiguration(ApiModel):
    """Which plugins are used, and what they are told."""

    enabled: list[str] | None = None
    """Names of the plugins to use, and of no others. Defaults to all that are installed."""
    disabled: list[str] = Field(default_factory=list)
    """Names of plugins that are not used; their code is not imported. Defaults to none."""
    configuration: dict[str, JsonObject] = Field(default_factory=dict)
    """What each plugin is told, by its name; the plugin says what it understands. Defaults to nothing."""

    def is_enabled(self, name: str) -> bool:
        """Whether the plugin of this name is used."""
        return name not in self.disabled and (self.enabled is None or name in self.enabled)

    def errors(self, known: Iterable[str]) -> Iterator[FieldError]:
        """Names that are unknown, or there twice.

        Args:
            known: the names of all plugins that could be enabled.
        """
        names = sorted(known)
        for field, listed in (("enabled", self.enabled or []), ("disabled", self.disabled)):
            for position, name in enumerate(listed):
                path = f"plugins.{field}[{position}]"
                if name not in names:
                    yield not_supported(path, name, names)
                elif name in listed[:position] or (field == "disabled" and name in (self.enabled or [])):
                    yield duplicate(path, name)
        for name in self.configuration:
            if name not in names:
                yield not_supported("plugins.configuration", name, names)
