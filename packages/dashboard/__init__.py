"""Makes `packages.dashboard.tests` a package beside `tests`; the distribution is `trainer_dashboard`."""
