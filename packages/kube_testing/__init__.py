"""Makes `packages.kube_testing.tests` a package beside `tests`; the distribution is `trainer_kube_testing`."""
