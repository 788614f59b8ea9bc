"""A thousand TrainJobs whose logs are followed at once: the processes that take part, and how they are led."""
