"""OptimizationJobs: sweeps over the parameters of TrainJobs."""

__version__ = "0.1.0"
