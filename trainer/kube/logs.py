"""Logging of our processes: structlog to stderr, JSON for machines and colours for people."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from structlog.typing import Processor

LEVELS = ("debug", "info", "warning", "error")


def configure_logging(*, json: bool | None = None, level: str = "info") -> None:
    """Send the log events of this process, those of libraries included, to stderr.

    Args:
        json: one JSON object per line; default: when stderr is not a terminal.
        level: least severe level to write, one of `LEVELS`; libraries never go below info, since some log bodies.

    Raises:
        ValueError: unknown level.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is not one of {', '.join(LEVELS)}")
    severity = logging.getLevelNamesMapping()[level.upper()]
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(severity),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(as_json=as_json)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(severity, logging.INFO))
    logging.getLogger("trainer").setLevel(severity)


def _renderers(*, as_json: bool) -> list[Processor]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Rich tracebacks show local variables, among them tokens.
    return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
