"""Shared memory for training containers: a plugin for the controller manager of TrainJobs."""
