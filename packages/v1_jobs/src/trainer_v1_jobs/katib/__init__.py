"""From Experiments of Katib to OptimizationJobs: an Experiment in, plain JSON out, with all that is lost on the way."""

from trainer_v1_jobs.katib.convert import KatibConversion, convert_experiment, first_trial

__all__ = ["KatibConversion", "convert_experiment", "first_trial"]
