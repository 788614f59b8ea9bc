"""Measuring growth: an API server of tens of thousands of TrainJobs, in a process of its own."""
