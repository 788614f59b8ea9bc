"""OptimizationJobs: sweeps over the parameters of TrainJobs."""

__version__ = "0.2.0"
