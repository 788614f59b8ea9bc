"""Looking at TrainJobs and runtimes, and changing TrainJobs."""
