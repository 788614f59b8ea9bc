"""Reading and following the logs of a TrainJob's containers."""
