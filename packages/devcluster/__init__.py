"""Makes `packages.devcluster.tests` a package beside `tests`; the distribution is `trainer_devcluster`."""
