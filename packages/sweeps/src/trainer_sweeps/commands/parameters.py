"""The values of a parameter as a command line and Python write them: `lr=log(1e-5,1e-1)`, or a list of choices."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from trainer.api import patterns
from trainer.api.optimization import LONGEST_TEXT, MOST_CHOICES, MOST_PARAMETERS, variable_of
from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.cli.run.sweep_api import Values
from trainer.cli.similar import did_you_mean
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import Interval, SearchSpace

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_FORM: Final = re.compile(r"(?P<kind>[A-Za-z]+)(?:\((?P<inside>.*)\)|:(?P<behind>.*))", re.DOTALL)
_INTERVALS: Final = {
    "log": ("logUniform", "Float"),
    "uniform": ("uniform", "Float"),
    "int": ("uniform", "Int"),
    "logint": ("logUniform", "Int"),
}
_CHOICE: Final = "choice"
_EXAMPLES: Final = {
    "log": "log(1e-5,1e-1)",
    "uniform": "uniform(0,1)",
    "int": "int(1,8)",
    "logint": "logint(1,100)",
    _CHOICE: "choice(16,32,64)",
}
_NUMBER: Final = patterns.compiled(patterns.DECIMAL_NUMBER)
_POINT_FIRST: Final = re.compile(r"^(?P<sign>-?)\.")
"""`.5`, as Python writes it, and the API does not."""


@dataclass(frozen=True, slots=True)
class SearchedParameter:
    """A parameter and the values that it can have."""

    name: str
    space: Object
    """`searchSpace` of the API."""
    choices: tuple[object, ...] = ()
    """The choices as a function gets them."""

    def to_object(self) -> Object:
        """The entry of `spec.parameters`."""
        return {"name": self.name, "searchSpace": self.space}

    @property
    def expression(self) -> str:
        """Python source of its value in the program of a trial."""
        text = f'__import__("os").environ[{variable_of(self.name)!r}]'  # imports no name that the function could use
        if self.choices:
            typed = ", ".join(f"{_text(value)!r}: {value!r}" for value in self.choices)
            return f"{{{typed}}}[{text}]"
        (interval,) = self.space.values()
        return f"{'int' if interval.get('type') == 'Int' else 'float'}({text})"


def parse_options(options: Iterable[str]) -> list[SearchedParameter]:
    """The parameters of `--param NAME=VALUES`.

    Raises:
        BadInputError: one is wrong; says what is expected, with an example.
    """
    space: dict[str, Values] = {}
    for option in options:
        name, separator, values = option.partition("=")
        if not separator:
            raise BadInputError(f"--param: {_shown(option)}: must be NAME=VALUES, such as --param 'lr=log(1e-5,1e-1)'")
        if name in space:
            raise BadInputError(f"--param: {_shown(name)} is given twice")
        space[name] = values
    if not space:
        raise BadInputError("--param: name what to search, such as --param 'lr=log(1e-5,1e-1)'")
    return parse_space(space, option="--param")


def parse_space(space: Mapping[str, Values], *, option: str = "space") -> list[SearchedParameter]:
    """The parameters of a mapping, as Python has it; `option` is what errors call it.

    Raises:
        BadInputError: one is wrong; says what is expected, with an example.
    """
    if not space:
        raise BadInputError(f"{option}: name what to search, such as {{'lr': trainer.log(1e-5, 1e-1)}}")
    if len(space) > MOST_PARAMETERS:
        raise BadInputError(f"{option}: has {len(space)} parameters, and can have {MOST_PARAMETERS}")
    found = [_parameter(name, values, option) for name, values in space.items()]
    variables: dict[str, str] = {}
    for each in found:
        other = variables.setdefault(variable_of(each.name), each.name)
        if other != each.name:
            raise BadInputError(
                f"{option}: {other} and {each.name} would both be the variable {variable_of(each.name)}: rename one"
            )
    return found


def _parameter(name: object, values: Values, option: str) -> SearchedParameter:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > LONGEST_TEXT:
        raise BadInputError(
            f"{option}: {_shown(str(name))}: the name of a parameter begins with a letter and has letters, "
            f"digits, _, . and -, at most {LONGEST_TEXT}"
        )
    where = f"{option}: {name}"
    if not isinstance(values, str):
        return _of_list(name, values, where)
    found = _FORM.fullmatch(values.strip())
    kind = found["kind"].lower() if found is not None else ""
    if found is None or kind not in _EXAMPLES:
        raise BadInputError(f"{where}: {_problem(values, kind)}; {_expected(name, kind)}")
    words = _words(found["inside"] if found["inside"] is not None else found["behind"], where)
    if kind == _CHOICE:
        return _of_choices(name, [(word, typed(word)) for word in words], where)
    return SearchedParameter(name, _interval(kind, words, where))


def _problem(values: str, kind: str) -> str:
    if not kind:
        return f"{_shown(values) or 'nothing'} is no set of values"
    return f"{kind} is no kind of values{did_you_mean(kind, _EXAMPLES)}".removesuffix("?")


def _expected(name: str, kind: str = "") -> str:
    if kind in _EXAMPLES:
        return f"write {name}={_EXAMPLES[kind]}"
    *others, last = (f"{name}={example}" for example in _EXAMPLES.values())
    return f"write {', '.join(others)} or {last}"


def _words(text: str, where: str) -> list[str]:
    """The words between commas; one in double quotes may have commas."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise BadInputError(f"{where}: {error}: close the quotes") from None
    return [word.strip() for word in rows[0]] if rows else []


def _interval(kind: str, words: Sequence[str], where: str) -> Object:
    field, type_ = _INTERVALS[kind]
    example = _EXAMPLES[kind]
    if len(words) != 2:
        raise BadInputError(f"{where}: {kind} takes the least and the greatest value, such as {example}")
    words = [_POINT_FIRST.sub(r"\g<sign>0.", word) for word in words]
    for word in words:
        if not _NUMBER.search(word) or len(word) > LONGEST_TEXT or not math.isfinite(float(word)):
            raise BadInputError(f"{where}: {_shown(word) or 'nothing'} is no number: write such as {example}")
    least, greatest = (float(word) for word in words)
    if least > greatest:
        raise BadInputError(f"{where}: {words[0]} is greater than {words[1]}: write the least value first")
    if field == "logUniform" and least <= 0:
        linear = "int" if type_ == "Int" else "uniform"
        raise BadInputError(f"{where}: {words[0]} has no logarithm: begin above 0, or take {linear}")
    if type_ == "Int" and not (least.is_integer() and greatest.is_integer()):
        raise BadInputError(f"{where}: {kind} takes integers, such as {example}")
    return {field: {"min": words[0], "max": words[1], **({"type": type_} if type_ == "Int" else {})}}


def _of_list(name: str, values: object, where: str) -> SearchedParameter:
    if not isinstance(values, Sequence | set | frozenset | range) or isinstance(values, bytes):
        raise BadInputError(
            f"{where}: must be a list of choices, or such as trainer.log(1e-5, 1e-1), and not a {type(values).__name__}"
        )
    for value in values:
        if not (
            value is None or type(value) in {bool, int, str} or (isinstance(value, float) and math.isfinite(value))
        ):
            raise BadInputError(f"{where}: {_shown(repr(value))}: choices are texts, numbers, booleans and None")
    plain = [float(value) if isinstance(value, float) else value for value in values]  # also those of numpy
    return _of_choices(name, [(_text(value), value) for value in plain], where)


def _of_choices(name: str, choices: Sequence[tuple[str, object]], where: str) -> SearchedParameter:
    texts = [text for text, _ in choices]
    if not texts or texts == [""]:
        raise BadInputError(f"{where}: has no choices: write {name}={_EXAMPLES[_CHOICE]}")
    if len(texts) > MOST_CHOICES:
        raise BadInputError(f"{where}: has {len(texts)} choices, and can have {MOST_CHOICES}")
    for text in texts:
        if len(text) > LONGEST_TEXT:
            raise BadInputError(f"{where}: {_shown(text)}: a choice has at most {LONGEST_TEXT} characters")
        if texts.count(text) > 1:
            raise BadInputError(f"{where}: {_shown(text) or 'an empty text'} is there twice")
    return SearchedParameter(name, {"categorical": {"choices": texts}}, tuple(value for _, value in choices))


def _text(value: object) -> str:
    """What the program reads; `parameters()` of the module `report` knows true and false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed(text: str) -> object:
    """A value as a number, true or false, if it is one, as `parameters()` of the module `report` reads it."""
    if text in {"true", "false"}:
        return text == "true"
    for type_ in (int, float):
        try:
            number = type_(text)
        except ValueError:
            continue
        if math.isfinite(number) and _NUMBER.search(text):
            return number
    return text


def _shown(text: str) -> str:
    return printable(text)[:80]


def space_text(space: SearchSpace) -> str:
    """Such as `log(1e-5,1e-1)`, which `--param` takes; empty for a space that has no values."""
    if space.categorical is not None:
        return f"choice({_joined(space.categorical.choices)})"
    if space.log_uniform is not None:
        return _interval_text("logint" if space.log_uniform.type == "Int" else "log", space.log_uniform)
    if space.uniform is not None:
        return _interval_text("int" if space.uniform.type == "Int" else "uniform", space.uniform)
    return ""


def _interval_text(kind: str, interval: Interval) -> str:
    return f"{kind}({interval.min},{interval.max})"


def _joined(choices: list[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(choices)
    return buffer.getvalue()
