"""Jobs of the Training and MPI Operator: converted into TrainJobs, and served by a manager."""

__version__ = "0.2.0"
