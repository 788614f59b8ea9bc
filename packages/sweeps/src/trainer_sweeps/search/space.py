"""The space of a search: each parameter with its values, as places between 0 and 1 and as the texts of trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Protocol, TypeAlias

from trainer.api.optimization import LONGEST_TEXT
from trainer_sweeps.api.optimizationjob import Interval, Parameter

_GREATEST: Final = 2**63 - 1
"""Integers have 64 bits, as everywhere in the API."""


class AlgorithmUnavailableError(Exception):
    """The next trial cannot be chosen, and trying again changes nothing; the message says what to do, for people."""


class Dimension(Protocol):
    """The values of one parameter."""

    @property
    def size(self) -> int | None:
        """How many values there are; None for numbers without steps."""

    def text_at(self, place: float) -> str:
        """The value at a place from 0 to 1, both included, as a trial gets it; as likely as any other by its width."""

    def place_of(self, text: str) -> float | None:
        """The place of a value, in the middle of its width; the nearest one for a number beyond the bounds.

        None for a text that is no value.
        """


@dataclass(frozen=True, slots=True)
class Choices:
    """Texts."""

    texts: Sequence[str]

    @property
    def size(self) -> int:
        """How many texts there are."""
        return len(self.texts)

    def text_at(self, place: float) -> str:
        """The text at a place."""
        return self.texts[_index(place, len(self.texts))]

    def place_of(self, text: str) -> float | None:
        """The place of a text; None for one that is no choice."""
        return _middle(self.texts.index(text), len(self.texts)) if text in self.texts else None


@dataclass(frozen=True, slots=True)
class Integers:
    """Integers from `low` to `high`."""

    low: int
    high: int
    is_log: bool = False

    @property
    def size(self) -> int:
        """How many integers there are."""
        return self.high - self.low + 1

    def text_at(self, place: float) -> str:
        """The integer at a place."""
        if not self.is_log:
            return str(self.low + _index(place, self.size))
        value = round(_at(place, math.log(self.low - 0.5), math.log(self.high + 0.5), is_exponent=True))
        return str(min(max(value, self.low), self.high))

    def place_of(self, text: str) -> float | None:
        """The place of an integer, or of the nearest one to a number; None for a text that is no number."""
        number = _number_of(text)
        if number is None:
            return None
        value = int(min(max(number, Decimal(self.low)), Decimal(self.high)).to_integral_value())
        if not self.is_log:
            return _middle(value - self.low, self.size)
        return _place(math.log(value), math.log(self.low - 0.5), math.log(self.high + 0.5))


@dataclass(frozen=True, slots=True)
class Floats:
    """Numbers from `low` to `high`."""

    low: float
    high: float
    is_log: bool = False

    @property
    def size(self) -> int | None:
        """One for a single value, else None."""
        return 1 if self.low == self.high else None

    def text_at(self, place: float) -> str:
        """The number at a place, in the fewest digits that give it back."""
        low, high = (math.log(self.low), math.log(self.high)) if self.is_log else (self.low, self.high)
        return repr(min(max(_at(place, low, high, is_exponent=self.is_log), self.low), self.high))

    def place_of(self, text: str) -> float | None:
        """The place of a number; None for a text that is none."""
        number = _number_of(text)
        if number is None:
            return None
        value = float(min(max(number, Decimal(self.low)), Decimal(self.high)))
        if self.is_log:
            return _place(math.log(value), math.log(self.low), math.log(self.high))
        return _place(value, self.low, self.high)


Space: TypeAlias = Mapping[str, Dimension]
"""The dimensions by the names of their parameters, in the order of the spec."""


def space_of(parameters: Sequence[Parameter]) -> Space:
    """The space of the parameters.

    Raises:
        AlgorithmUnavailableError: a parameter has no values. Admission refuses that, where it is installed.
    """
    return {parameter.name: _dimension_of(parameter) for parameter in parameters}


def _dimension_of(parameter: Parameter) -> Dimension:
    space = parameter.search_space
    if space.categorical is not None and space.categorical.choices:
        return Choices(space.categorical.choices)
    interval, is_log = (space.uniform, False) if space.uniform is not None else (space.log_uniform, True)
    if interval is None:
        raise AlgorithmUnavailableError(f"parameter {parameter.name} has no search space: set one in a new sweep")
    low, high = _number_of(interval.min), _number_of(interval.max)
    if low is not None and high is not None and low <= high and (low > 0 or not is_log):
        dimension = _interval(interval, low, high, is_log=is_log)
        if dimension is not None:
            return dimension
    kind = "integers of 64 bits" if interval.type == "Int" else "numbers"
    raise AlgorithmUnavailableError(
        f"parameter {parameter.name} has no value: there are no {'positive ' * is_log}{kind} from {interval.min} to "
        f"{interval.max}. Set other bounds in a new sweep"
    )


def _interval(interval: Interval, low: Decimal, high: Decimal, *, is_log: bool) -> Dimension | None:
    if interval.type == "Float":
        floats = Floats(float(low), float(high), is_log)
        is_usable = math.isfinite(floats.low) and math.isfinite(floats.high) and (floats.low > 0 or not is_log)
        return floats if is_usable else None
    if low < -_GREATEST or high > _GREATEST:
        return None
    integers = Integers(math.ceil(low), math.floor(high), is_log)
    return integers if integers.size > 0 else None


def _number_of(text: str) -> Decimal | None:
    if len(text) > LONGEST_TEXT:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _index(place: float, size: int) -> int:
    return min(int(place * size), size - 1)


def _middle(index: int, size: int) -> float:
    return (index + 0.5) / size


def _at(place: float, low: float, high: float, *, is_exponent: bool) -> float:
    value = low * (1 - place) + high * place
    try:
        return math.exp(value) if is_exponent else value
    except OverflowError:
        return math.inf


def _place(value: float, low: float, high: float) -> float:
    """The share of the way from low to high; by halves, since the whole may be more than a float holds."""
    width = high / 2 - low / 2
    return min(max((value / 2 - low / 2) / width, 0.0), 1.0) if width > 0 else 0.5
