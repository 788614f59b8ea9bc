"""Makes `packages.sweeps.tests` a package beside `tests`; the distribution is `trainer_sweeps`."""
