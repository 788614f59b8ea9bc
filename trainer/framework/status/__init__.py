"""PostExecution (KEP-2170): the status of a TrainJob, its conditions and events."""
