"""Serves PyTorchJobs and JAXJobs of `kubeflow.org/v1`: each becomes a TrainJob, whose progress becomes its status."""
