"""Which plugins are enabled."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.startup.plugins_configuration import PluginsConfiguration


@pytest.mark.parametrize(
    ("configuration", "enabled"),
    [
        pytest.param({}, {"a", "b", "c"}, id="default"),
        pytest.param({"enabled": ["b"]}, {"b"}, id="only one"),
        pytest.param({"enabled": []}, set(), id="none"),
        pytest.param({"disabled": ["b"]}, {"a", "c"}, id="all but one"),
    ],
)
def test_enabled(configuration: dict[str, Any], enabled: set[str]) -> None:
    """All plugins are used unless some are chosen or left out."""
    settings = PluginsConfiguration.from_object(configuration, strict=True)

    assert {name for name in "abc" if settings.is_enabled(name)} == enabled
    assert not list(settings.errors("abc"))


def test_errors() -> None:
    """Every unknown or repeated name is told with the place where it stands."""
    settings = PluginsConfiguration(enabled=["a", "x", "a"], disabled=["b", "a"], configuration={"c": {}, "y": {}})

    assert [str(error) for error in settings.errors("cba")] == [
        'plugins.enabled[1]: Unsupported value: "x": supported values: "a", "b", "c"',
        'plugins.enabled[2]: Duplicate value: "a"',
        'plugins.disabled[1]: Duplicate value: "a"',
        'plugins.configuration: Unsupported value: "y": supported values: "a", "b", "c"',
    ]
