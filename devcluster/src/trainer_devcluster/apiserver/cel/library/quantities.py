"""Quantities: amounts such as `500m` and `4Gi`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from trainer.kube.quantity import parse_quantity
from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.values import MAX_INT, MIN_INT

if TYPE_CHECKING:
    from decimal import Decimal

    from trainer_devcluster.apiserver.cel.signatures import Function


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount."""

    CEL_TYPE: ClassVar[str] = "kubernetes.Quantity"
    amount: Decimal

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read an amount.

        Raises:
            EvaluationError: it is none.
        """
        try:
            return cls(parse_quantity(text))
        except (ValueError, ArithmeticError) as error:
            rule = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            raise EvaluationError(rule) from error

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number that fits into 64 bits."""
        return self.amount == self.amount.to_integral_value() and MIN_INT <= self.amount <= MAX_INT

    def as_integer(self) -> int:
        """The whole number.

        Raises:
            EvaluationError: it is none.
        """
        if not self.is_integer:
            raise EvaluationError("cannot convert value to integer")
        return int(self.amount)


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except EvaluationError:
        return False
    return True


def _compared(left: Quantity, right: Quantity) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("quantity(string) -> kubernetes.Quantity", Quantity.parse),
    ("isQuantity(string) -> bool", _is_quantity),
    ("kubernetes.Quantity.sign() -> int", lambda q: (q.amount > 0) - (q.amount < 0)),
    ("kubernetes.Quantity.isInteger() -> bool", lambda q: q.is_integer),
    ("kubernetes.Quantity.asInteger() -> int", Quantity.as_integer),
    ("kubernetes.Quantity.asApproximateFloat() -> double", lambda q: float(q.amount)),
    ("kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool", lambda a, b: a.amount > b.amount),
    ("kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool", lambda a, b: a.amount < b.amount),
    ("kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int", _compared),
    ("kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity", lambda a, b: Quantity(a.amount + b.amount)),
    ("kubernetes.Quantity.add(int) -> kubernetes.Quantity", lambda a, b: Quantity(a.amount + b)),
    ("kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity", lambda a, b: Quantity(a.amount - b.amount)),
    ("kubernetes.Quantity.sub(int) -> kubernetes.Quantity", lambda a, b: Quantity(a.amount - b)),
]
