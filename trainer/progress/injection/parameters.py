"""What a training was started with, as one line of its log: the tag of progress, and `{"parameters": {"lr": "0.1"}}`.

They are what `argparse` has parsed for the script itself, defaults included, and what a Trainer of transformers has got
other than its defaults. The status of a TrainJob has no place for them (KEP-2779), so only what reads the log for
people takes them: the page and the history. A name that says that its value is secret is left out with it.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from types import FrameType
from typing import Any

_MOST = 200
"""Parameters of a line."""
_LONGEST_NAME, _LONGEST_VALUE, _LONGEST_LIST = 64, 200, 16
_LINE_LIMIT = 16_384
_LINES = 8
"""Lines of a process."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = frozenset({
    "token", "key", "apikey", "password", "passwd", "passphrase", "pwd", "pass", "secret", "credential", "credentials",
    "auth", "authorization", "cookie", "jwt", "bearer", "dsn", "webhook", "pat",
})  # fmt: skip
_SECRET_VALUE = re.compile(r"://[^/\s@]*@|\b(?:hf_|gh[opsur]_|github_pat_|glpat-|sk-|xox[abeprs]-|AKIA|ASIA|eyJ)\w{8,}")
_DATACLASSES = "transformers.hf_argparser"
"""The module whose parser makes an option of each field of a dataclass."""
_PARSERS = frozenset({"argparse", _DATACLASSES})
"""Modules between a script and its parser."""
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python3")
_PROCESS = "TRAINER_PARAMETERS_PROCESS"
"""Variable with the process that has reported: the programs that it starts are not the training."""

_said: list[str] = []
_depth: list[bool] = []


def report_parameters(parameters: Mapping[str, object]) -> None:
    """Write them, in the first of all processes alone, and never raise."""
    with suppress(Exception):
        _report(parameters)


def _report(parameters: Mapping[str, object]) -> None:
    from trainer.progress.report import TAG, rank  # noqa: PLC0415 most programs with a parser train nothing

    own = str(os.getpid())
    if rank() or os.environ.setdefault(_PROCESS, own) != own or len(_said) >= _LINES:
        return
    import json  # noqa: PLC0415 as above

    shown = dict(_shown(parameters))
    while shown:
        text = json.dumps({"parameters": shown}, separators=(",", ":"))
        if len(text) <= _LINE_LIMIT:
            break
        shown = dict(list(shown.items())[: len(shown) // 2])
    if shown and text not in _said:
        _said.append(text)
        # Not to stdout, which a shell may read as the answer of a program. A log has both.
        sys.stderr.flush()
        os.write(2, f"{TAG} {text}\n".encode("ascii"))


def _shown(parameters: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Names and texts of the values that are short, plain and no secrets."""
    count = 0
    for name, value in parameters.items():
        if count >= _MOST:
            return
        if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= _LONGEST_NAME:
            continue
        if any(word.lower() in _SECRET for word in _WORD.findall(name)):
            continue
        text = _text(value)
        if text is not None and not _SECRET_VALUE.search(text):
            count += 1
            yield name, text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def _text(value: object) -> str | None:
    """A plain value as text; None for all others, whose text may be long or costly."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        return "".join(each if each.isprintable() else " " for each in text) if isinstance(text, str) else None
    if isinstance(value, (list, tuple)) and len(value) <= _LONGEST_LIST:
        texts = [_text(each) for each in value if not isinstance(each, (list, tuple))]
        return " ".join(text for text in texts if text is not None) if len(texts) == len(value) else None
    return None


def watch_argparse(module: Any) -> None:
    """Report what a parser of the script has parsed; those of launchers and libraries say nothing of the training."""
    original = module.ArgumentParser.parse_known_args

    @functools.wraps(original)
    def parse_known_args(self: Any, *given: Any, **options: Any) -> Any:
        is_outermost = not _depth
        _depth.append(True)
        try:
            result = original(self, *given, **options)
        finally:
            _depth.pop()
        if is_outermost:
            with suppress(Exception):
                if _is_of_script(sys._getframe(1)):  # noqa: SLF001
                    report_parameters(_parsed(self, vars(result[0])))
        return result

    module.ArgumentParser.parse_known_args = parse_known_args


def _parsed(parser: Any, values: Mapping[str, object]) -> dict[str, object]:
    """The values of a parser; those of a parser of TrainingArguments, which has 120 of them, without defaults."""
    is_of_library = any(each.__module__ == _DATACLASSES for each in type(parser).__mro__)
    return {name: value for name, value in values.items() if not is_of_library or value != parser.get_default(name)}


def _is_of_script(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") in _PARSERS:
        frame = frame.f_back
    return frame is not None and not any(part in frame.f_code.co_filename for part in _LIBRARIES)


def changed(arguments: Any) -> dict[str, object]:
    """The fields of a dataclass, such as the arguments of a Trainer, that have not their default values."""
    import dataclasses  # noqa: PLC0415 it takes longer to import than all of this

    found = {}
    for each in dataclasses.fields(arguments):
        value = getattr(arguments, each.name)
        default = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        if value != default and not each.name.startswith("_"):
            found[each.name] = value
    return found
