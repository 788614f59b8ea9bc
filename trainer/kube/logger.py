"""Loggers that are silent until the program configures logging, like those of every library.

structlog without a configuration prints everything to standard output, which is the program's: a script or a notebook
that calls us would show our debug messages among its results.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import structlog
from structlog.typing import BindableLogger, FilteringBoundLogger

_Silent = structlog.make_filtering_bound_logger(logging.CRITICAL)


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a module, to be called with its `__name__`.

    It writes as structlog is configured, such as by `configure_logging`, and nothing before.
    """
    wrapper = cast("type[BindableLogger]", _wrapped)
    return cast("FilteringBoundLogger", structlog.wrap_logger(None, wrapper_class=wrapper, logger_factory_args=(name,)))


def _wrapped(logger: Any, **state: Any) -> BindableLogger:
    """Called as a class would be, each time that a logger is bound, unless the configuration caches the first."""
    wrapper: Any = structlog.get_config()["wrapper_class"] if structlog.is_configured() else _Silent
    return cast("BindableLogger", wrapper(logger, **state))
