"""JobSet: builds the JobSet of a TrainJob, knows the names of its pods, and reads how it ended (KEP-2170)."""

from trainer.plugins.jobset.plugin import JobSetPlugin as JobSetPlugin
