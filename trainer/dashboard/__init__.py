"""The dashboard: a web page on loopback that shows TrainJobs with the rights of whoever has started it."""
