"""From the kinds of the Training and MPI Operator to TrainJobs, for the command line and for controllers.

`convert` is the way in. It is pure: a job in, a TrainJob out, with the runtime that was written for it unless a given
one says the same, and all that is lost on the way.
"""

from trainer_v1_jobs.conversion.convert import Conversion, convert

__all__ = ["Conversion", "convert"]
