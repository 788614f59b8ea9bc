"""Makes `packages.initializers.tests` a package beside `tests`; the distribution is `trainer_initializers`."""
