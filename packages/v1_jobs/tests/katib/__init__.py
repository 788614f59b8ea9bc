"""Experiments of Katib become OptimizationJobs."""
