"""Admission of TrainJobs and training runtimes: defaults, validation and warnings."""
