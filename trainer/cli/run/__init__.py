"""Submitting TrainJobs and following them on the screen."""
