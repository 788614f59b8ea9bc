"""Makes `packages.v1_jobs.tests` a package beside `tests`; the distribution is `trainer_v1_jobs`."""
