"""Findings of admission."""

from __future__ import annotations

from itertools import count

from trainer.framework import AdmissionWarning, FieldError, Review


def test_findings_are_sorted_without_repetitions() -> None:
    """Errors and warnings are apart, each in the order of their fields."""
    error, other = FieldError("spec.b", "wrong"), FieldError("spec.a", "wrong")
    warning = AdmissionWarning("spec.c", "unusual")
    assert Review.of([error, warning, other, error]) == Review((other, error), (warning,))


def test_an_author_can_make_errors_without_end() -> None:
    """The review ends after a thousand, and a warning before any error does not end it."""
    drawn = count()
    review = Review.of(FieldError(f"spec.args[{number}]", "wrong") for number in drawn)
    assert len(review.errors) == 1000
    assert next(drawn) == 1000
    many = [AdmissionWarning(f"spec.args[{number}]", "unusual") for number in range(2000)]
    assert Review.of([*many, FieldError("spec", "wrong")]).errors
