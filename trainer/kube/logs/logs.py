"""Logging of our processes: structlog to stderr, JSON for machines and colours for people.

Our events and those of libraries (aiohttp, asyncio, Python's own warnings) go one way: they carry what is bound in the
context, such as controller and reconcile_id, an exception is one field, and what is called a credential is redacted.
JSON never makes the event loop wait for the reader of stderr; text for people does.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TextIO

import structlog
from structlog.typing import Processor

from trainer.kube.errors import KubeError, causes_of
from trainer.kube.logger import get_logger
from trainer.kube.logs.escaping import escape
from trainer.kube.logs.line_writer import LineWriter
from trainer.kube.logs.redaction import redact

log = get_logger(__name__)

LEVELS = ("debug", "info", "warning", "error")
FLUSH_TIMEOUT = 2.0
"""Seconds that the end of the process may wait for the reader of stderr."""


def configure_logging(*, json: bool | None = None, level: str = "info") -> None:
    """Send the log events of this process, those of libraries included, to stderr.

    Args:
        json: one JSON object per line; default: when stderr is not a terminal. Otherwise text, with colours if it is
            one (and NO_COLOR is not set).
        level: least severe level to write, one of `LEVELS`; libraries never go below info, since some log bodies.

    Raises:
        ValueError: unknown level.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is not one of {', '.join(LEVELS)}")
    severity = logging.getLevelNamesMapping()[level.upper()]
    as_json = not sys.stderr.isatty() if json is None else json
    stamps: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    contents: list[Processor] = [
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact,
    ]
    rendering = _rendering(as_json=as_json)
    stream = _stream() if as_json else sys.stderr
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *contents, *stamps, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(severity),
        # Records of `logging` cost as much as all else about an event.
        logger_factory=partial(_Lines, stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.contextvars.merge_contextvars, *stamps],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *contents, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(severity, logging.INFO))
    logging.getLogger("trainer").setLevel(severity)
    logging.captureWarnings(capture=True)
    sys.excepthook = partial(_log_end, as_json=as_json)


class _Lines:
    """The logger of one name, which writes each rendered event as a line."""

    def __init__(self, stream: LineWriter | TextIO, name: str = "") -> None:
        self._stream = stream
        self.name = name

    def info(self, line: str) -> None:
        # Whoever logs goes on where nobody reads the stream any more.
        with suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")
            self._stream.flush()

    debug = warning = error = critical = exception = info


def _rendering(*, as_json: bool) -> list[Processor]:
    if as_json:
        return [structlog.processors.JSONRenderer()]
    colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    # Rich tracebacks show local variables, among them tokens.
    return [escape, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)]


def _stream() -> LineWriter | TextIO:
    try:
        writer = LineWriter(sys.stderr.fileno())
    except OSError:
        # A test has put something else in its place.
        return sys.stderr
    atexit.register(writer.close, FLUSH_TIMEOUT)
    return writer


def _log_end(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None, *, as_json: bool
) -> None:
    """What Python does with an exception that nobody catches, which would be many lines.

    Errors of this package say what to do; where in the code they came up helps nobody.
    """
    causes = causes_of(error)
    if all(isinstance(cause, KubeError) for cause in causes):
        log.critical("gave up", error="; ".join(map(str, causes)))
        return
    if issubclass(kind, KeyboardInterrupt) or not as_json:
        sys.__excepthook__(kind, error, traceback)
        return
    log.critical("crashed", exc_info=(kind, error, traceback))
