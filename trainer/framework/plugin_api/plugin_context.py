"""What the constructor of a plugin gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.api.model import ApiModel
    from trainer.framework.plugin_api.reader import Reader

    _M = TypeVar("_M", bound=ApiModel)


class PluginContext:
    """What a plugin may use: the cluster as cached, and its own configuration.

    Args:
        reader: answers only about resources that the plugin watches, and only once the manager runs; it is for hooks,
            not for constructors.
        configuration: `plugins.configuration[<name>]` of the manager's configuration. Defaults to an empty mapping.
    """

    def __init__(self, reader: Reader, configuration: Mapping[str, object] | None = None) -> None:
        self.reader = reader
        self._configuration = dict(configuration or {})
        self._was_read = False

    @property
    def configuration(self) -> Mapping[str, object]:
        """What the platform engineer has written for this plugin, unchecked: decoded YAML.

        A plugin that does not read it takes no configuration, so that any is refused. To refuse it, raise
        `InvalidObjectError` with errors at paths within the configuration, or any other exception with a message.
        """
        self._was_read = True
        return self._configuration

    def settings(self, model: type[_M]) -> _M:
        """The configuration as a model; unknown fields are refused.

        Raises:
            InvalidObjectError: it does not fit; pass it on, and the manager does not start but names plugin and field.
        """
        return model.from_object(self.configuration, strict=True)

    @property
    def is_ignored(self) -> bool:
        """Whether there is a configuration that was never read."""
        return bool(self._configuration) and not self._was_read
