"""OptimizationJobs, as commands ask for them."""

from __future__ import annotations


class OptimizationJobKind:
    """OptimizationJobs, for the commands of trainer-operator."""
