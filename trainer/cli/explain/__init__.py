"""`trainer explain`: why a TrainJob does not run."""
