"""The libraries that are measured."""

from __future__ import annotations

from benchmarks.subjects.kopf_operator import KopfOperator
from benchmarks.subjects.subject import Subject
from benchmarks.subjects.trainer_kube import TrainerKube
from benchmarks.subjects.typed_watch import TypedWatch

OURS = TrainerKube()

SUBJECTS: tuple[Subject, ...] = (OURS, KopfOperator(), TypedWatch())
"""In the order of the table's columns."""
