"""The controller of OptimizationJobs."""
