"""The `trainer` command: a dev cluster and controller manager on a laptop, and TrainJobs submitted and followed."""
