"""A small Kubernetes-compatible cluster for laptops and tests; knows nothing of TrainJobs."""

__version__ = "0.2.0"
