"""The dashboard: a web page that shows TrainJobs with the rights of its users, and the history of trainings."""

__version__ = "0.2.0"
