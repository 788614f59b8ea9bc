"""The set of plugins."""

from __future__ import annotations

import pytest

from trainer.framework.registry import Registry


class Alpha:
    """A plugin without extension points."""

    def __init__(self, name: str = "alpha") -> None:
        self.name = name


class Beta(Alpha):
    """Another one."""


def test_holds_plugins() -> None:
    """Plugins of different types and names live side by side."""
    plugins = [Alpha(), Beta("beta")]
    registry = Registry(plugins)
    assert list(registry) == plugins
    assert len(registry) == 2


@pytest.mark.parametrize(
    ("second", "message"),
    [
        pytest.param(Alpha("other"), "the plugin other is registered twice", id="type"),
        pytest.param(Beta("alpha"), "there are two plugins called alpha; rename one of them", id="name"),
    ],
)
def test_duplicates_are_refused(second: Alpha, message: str) -> None:
    """Neither a type nor a name can be registered twice."""
    with pytest.raises(ValueError, match=message):
        Registry([Alpha(), second])
