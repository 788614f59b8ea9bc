"""Admission of TrainJobs and training runtimes: defaults, checks and warnings, before anything is stored."""
