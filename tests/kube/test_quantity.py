"""Amounts of resources."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from trainer.kube.quantity import Quantity, parse_amounts, parse_quantity, quantity_problem, whole_units


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(2, "2", id="integer"),
        pytest.param(1.5, "1.5", id="float-as-the-SDK-sends"),
        pytest.param("500m", "0.5", id="milli"),
        pytest.param("100n", "0.0000001", id="nano"),
        pytest.param("2k", "2000", id="kilo"),
        pytest.param("4Gi", "4294967296", id="gibi"),
        pytest.param("1Ei", "1152921504606846976", id="exbi"),
        pytest.param("1E", "1000000000000000000", id="exa-is-not-an-exponent"),
        pytest.param("1e3", "1000", id="exponent"),
        pytest.param("12E-1", "1.2", id="negative-exponent"),
        pytest.param(".5", "0.5", id="no-leading-digit"),
        pytest.param("-3", "-3", id="sign"),
    ],
)
def test_parse(value: object, expected: str) -> None:
    """All notations of resource.Quantity are read exactly."""
    assert parse_quantity(value) == Decimal(expected)


@pytest.mark.parametrize("value", ["", "x", "1x", "1 Gi", "Gi", "1.2.3", "٣", None, True, [1]])
def test_refused(value: object) -> None:
    """Anything else is refused with an example of what is right."""
    with pytest.raises(ValueError, match="must be a quantity such as 2, 500m or 4Gi"):
        parse_quantity(value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        pytest.param("1e999999", "an exponent of at most 2 digits, got '1e999999'", id="exponent"),
        pytest.param("1e-999999", "an exponent of at most 2 digits", id="negative-exponent"),
        pytest.param("9" * 65, "at most 64 characters, such as 2, 500m or 4Gi$", id="digits"),
        pytest.param("0." + "0" * 1_000_000, "at most 64 characters, such as 2, 500m or 4Gi$", id="zeros"),
        pytest.param("8Ei", "below 8Ei, of at most 9223372036854775807, got '8Ei'", id="exbi"),
        pytest.param("-10E", "below 8Ei", id="negative"),
        pytest.param(2**63, "below 8Ei", id="integer"),
        pytest.param(1e300, "an exponent of at most 2 digits", id="float"),
        pytest.param(float("inf"), "must be a quantity such as", id="infinite"),
        pytest.param(float("nan"), "must be a quantity such as", id="no-number"),
    ],
)
def test_out_of_bounds(value: object, rule: str) -> None:
    """What would be expensive to calculate with, or more than Kubernetes can count, is refused with what is allowed."""
    with pytest.raises(ValueError, match=rule):
        parse_quantity(value)


def test_bounds_are_those_of_kubernetes() -> None:
    """The largest amount is the largest of Kubernetes, and the smallest exponent leaves a single nano."""
    assert str(Quantity.parse(2**63 - 1)) == str(2**63 - 1)
    assert str(Quantity.parse("1e-99")) == "1n"


@pytest.mark.parametrize(
    ("amount", "is_binary", "expected"),
    [
        pytest.param(Decimal(10) ** 18 * 3000, False, "3000E", id="nothing-beyond-exa"),
        pytest.param(Decimal(1024) ** 6 * 2048, True, "2048Ei", id="nothing-beyond-exbi"),
    ],
)
def test_sums_may_be_larger(amount: Decimal, is_binary: bool, expected: str) -> None:
    """What all pods of a gang request together is larger than any single amount."""
    assert str(Quantity(amount, is_binary)) == expected


@pytest.mark.parametrize(("value", "units"), [("2.5", 3), ("0.7", 1), ("2500m", 3), ("3.7", 4), ("4", 4), ("0", 0)])
def test_whole_units(value: str, units: int) -> None:
    """A part of a unit occupies the unit."""
    assert whole_units(value) == units


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(4, "4", id="integer"),
        pytest.param("0", "0", id="nothing"),
        pytest.param("1.5", "1500m", id="fraction"),
        pytest.param("2000m", "2", id="milli-that-are-whole"),
        pytest.param("64000", "64k", id="thousands"),
        pytest.param("1e3", "1k", id="exponent"),
        pytest.param("0.5e-9", "1n", id="less-than-nano-is-rounded-up"),
        pytest.param("2048Mi", "2Gi", id="gibi-in-mebi"),
        pytest.param("0.5Gi", "512Mi", id="part-of-a-gibi"),
        pytest.param("1.5Ki", "1536", id="no-kibi"),
        pytest.param("0.1Gi", "107374182400m", id="part-of-a-byte"),
        pytest.param("-1.5", "-1500m", id="negative"),
    ],
)
def test_canonical_form(value: object, expected: str) -> None:
    """Quantities are written without fraction, with the largest suffix that loses nothing, as Kubernetes does."""
    assert str(Quantity.parse(value)) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("500m", "1", "1500m", id="cpus"),
        pytest.param("1Gi", "1Gi", "2Gi", id="memory"),
        pytest.param("1Gi", "1G", "2073741824", id="notation-of-the-first"),
        pytest.param("1G", "1Gi", "2073741824", id="notation-of-the-other-is-lost"),
        pytest.param("0", "2Gi", "2Gi", id="nothing-has-no-notation"),
        pytest.param("0.1", "0.2", "300m", id="exact"),
    ],
)
def test_sum(one: str, other: str, expected: str) -> None:
    """Sums are exact and keep the notation."""
    assert str(Quantity.parse(one) + Quantity.parse(other)) == expected


def test_multiple() -> None:
    """So do multiples."""
    assert (str(Quantity.parse("250m") * 6), str(Quantity.parse("512Mi") * 4)) == ("1500m", "2Gi")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("nvidia.com/gpu=8", {"nvidia.com/gpu": "8"}, id="extended"),
        pytest.param("cpu=500m, memory = 16Gi", {"cpu": "500m", "memory": "16Gi"}, id="several"),
    ],
)
def test_amounts(text: str, expected: dict[str, str]) -> None:
    """Amounts on a command line are names and quantities."""
    assert parse_amounts(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("gpu", "'gpu' is not NAME=QUANTITY", id="no-amount"),
        pytest.param("=3", "'=3' is not NAME=QUANTITY", id="no-name"),
        pytest.param("a/b/c=3", "'a/b/c=3' is not NAME=QUANTITY", id="bad-name"),
        pytest.param("cpu=many", "must be a quantity such as 2, 500m or 4Gi, got 'many'", id="no-quantity"),
        pytest.param("cpu=-1", "cpu: must not be negative, got '-1'", id="negative"),
        pytest.param("cpu=1,cpu=2", "cpu is given twice", id="twice"),
    ],
)
def test_refused_amounts(text: str, complaint: str) -> None:
    """What cannot be read is refused with the entry."""
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_amounts(text)


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        pytest.param("200MB", "write 200M or 200Mi", id="megabytes"),
        pytest.param("200mb", "", id="in small letters, which would be a thousandth"),
        pytest.param("1.5 GB", "write 1.5G or 1.5Gi", id="blank"),
        pytest.param("16GiB", "write 16Gi", id="binary"),
        pytest.param("16 apples", "", id="something else"),
    ],
)
def test_numbers_of_bytes(value: str, instead: str) -> None:
    """What people write for bytes elsewhere is refused with what they write here."""
    problem = quantity_problem(value)
    assert problem == "must be a quantity such as 2, 500m or 4Gi" + (f": {instead}" if instead else "")
