"""What a plugin is made with."""

from __future__ import annotations

import pytest

from tests.framework.static_reader import StaticReader
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.model import ApiModel
from trainer.framework.plugin_api.plugin_context import PluginContext


class Settings(ApiModel):
    """What a plugin gets."""

    cell_size: int = 3


def test_settings() -> None:
    """The configuration becomes a model; what is absent has its default."""
    assert PluginContext(StaticReader()).settings(Settings) == Settings()
    assert PluginContext(StaticReader(), {"cellSize": 5}).settings(Settings) == Settings(cell_size=5)


@pytest.mark.parametrize("configuration", [{"cellSize": "5"}, {"cellsize": 5}], ids=["type", "unknown"])
def test_wrong_settings(configuration: dict[str, object]) -> None:
    """Wrong and unknown fields are refused with their path."""
    with pytest.raises(InvalidObjectError) as caught:
        PluginContext(StaticReader(), configuration).settings(Settings)
    assert [error.field for error in caught.value.errors] == list(configuration)


def test_the_configuration_is_a_mapping() -> None:
    """A plugin may as well look at what was written."""
    assert PluginContext(StaticReader(), {"a": [1]}).configuration == {"a": [1]}


def test_a_configuration_that_nobody_looks_at() -> None:
    """It is known whether the plugin has looked; there is nothing to see in an empty configuration."""
    unread, read = PluginContext(StaticReader(), {"a": 1}), PluginContext(StaticReader(), {"a": 1})
    assert read.configuration
    assert (unread.is_ignored, read.is_ignored) == (True, False)
    assert not PluginContext(StaticReader()).is_ignored
