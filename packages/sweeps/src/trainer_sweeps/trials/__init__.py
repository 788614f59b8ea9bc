"""Trials: the TrainJobs of a sweep, how they are made and what they have reached."""
