"""Progress and metrics of trainings: read from the log of the primary pod, written to the TrainJob (KEP-2779)."""
