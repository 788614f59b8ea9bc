"""A small Kubernetes-compatible cluster for laptops and tests; knows nothing of TrainJobs."""
