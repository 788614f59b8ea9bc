"""Pod network modes as test parameters."""

from __future__ import annotations

import pytest

ISOLATED = [
    pytest.param("netns", id="netns", marks=pytest.mark.root),
    pytest.param("hosts", id="hosts", marks=pytest.mark.root),
]
MODES = [*ISOLATED, pytest.param("plain", id="plain")]

every_mode = pytest.mark.parametrize("mode", MODES)
isolated_modes = pytest.mark.parametrize("mode", ISOLATED)
simplest_mode = pytest.mark.parametrize("mode", MODES[2:])
simplest_isolated_mode = pytest.mark.parametrize("mode", ISOLATED[1:])
