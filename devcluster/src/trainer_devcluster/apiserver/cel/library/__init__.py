"""Library: the functions that expressions may call in the API server."""

from __future__ import annotations

from typing import Final

from trainer_devcluster.apiserver.cel.library import (
    conversions,
    formats,
    lists,
    network,
    operators,
    optionals,
    quantities,
    sets,
    strings,
    times,
    urls,
    versions,
)
from trainer_devcluster.apiserver.cel.signatures import declare, merged

_MODULES: Final = (
    operators, conversions, optionals, strings, lists, times, sets, urls, network, quantities, versions, formats,
)  # fmt: skip
FUNCTIONS: Final = merged(*(declare(module.SIGNATURES) for module in _MODULES))
"""All functions, by name."""
