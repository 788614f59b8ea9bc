"""Amounts of resources."""

from __future__ import annotations

from decimal import Decimal

import pytest

from trainer.kube.quantity import parse_quantity, whole_units


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


@pytest.mark.parametrize(("value", "units"), [("2.5", 3), ("0.7", 1), ("2500m", 3), ("3.7", 4), ("4", 4), ("0", 0)])
def test_whole_units(value: str, units: int) -> None:
    """A part of a unit occupies the unit."""
    assert whole_units(value) == units
